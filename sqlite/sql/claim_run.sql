-- Makes a worker the owner of a due run. The count in the upper 32 bits of the epoch is incremented, and the lower 32 bits
-- become the nonce of the claim, so that writes of the previous owner are fenced. The mark of a wake is cleared: the
-- execution checks what woke the run.
UPDATE durable_run
SET status = 2, epoch = ((epoch >> 32) + 1) << 32 | ?, owner = ?, wake_at = ?, started_at = coalesce(started_at, ?), reason = CASE WHEN ? THEN reason END, woken = 0, crashes = ?, progress = ?,
    lost_at = coalesce(?, lost_at), lost_by = CASE WHEN status = 2 THEN owner ELSE lost_by END, lane = ?, version = ?
WHERE shard = ? AND id = ? AND wake_at <= ?;
