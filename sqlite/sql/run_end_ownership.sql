-- Ends an ownership of a run, which is finished, parked, released or paused. The run must be running (2) at the given epoch.
-- The last two parameters block the write at the first attempt: the control bits, and, for a run that parks, the mark of a
-- wake. A run that is released (1) keeps the reason of its hold. end_ownership.go handles a blocked write and repeats it without
-- the two.
UPDATE durable_run
SET status = ?,
    output = CAST(? AS BLOB),
    error = CAST(? AS BLOB),
    reason = coalesce(?, CASE WHEN ? = 1 THEN reason END),
    trace = coalesce(?, trace),
    wake_at = ?,
    ended_at = ?,
    failed_step = ?,
    failed_type = ?,
    owner = NULL,
    woken = 0
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND (control & ?) = 0 AND (woken & ?) = 0;
