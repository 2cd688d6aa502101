-- Gives a due run to a worker. The epoch's count, in its upper 32 bits, rises, and
-- its lower ones get the nonce of the claim, which fences whoever had it; what woke it
-- is found by its execution.
UPDATE durable_run
SET status = 2, epoch = ((epoch >> 32) + 1) << 32 | ?, owner = ?, wake_at = ?, started_at = coalesce(started_at, ?), reason = CASE WHEN ? THEN reason END, woken = 0, crashes = ?, progress = ?,
    lost_at = coalesce(?, lost_at), lost_by = CASE WHEN status = 2 THEN owner ELSE lost_by END
WHERE shard = ? AND id = ? AND wake_at <= ?;
