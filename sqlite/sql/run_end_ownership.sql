-- Ends an ownership of a run, which is finished, parked, released or paused. The run must be running (2) at the given epoch.
-- The last two parameters block the write at the first attempt: the control bits, and, for a run that parks, the mark of a
-- wake. A run that is released (1) keeps the reason of its hold. If a run with crashes has made progress since the last of them (see
-- run_progress.sql), its count of crashes begins again, so that it is no suspect any more. end_ownership.go handles a blocked write and repeats it without
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
    woken = 0,
    crashes = CASE
        WHEN crashes > 0 AND (
            SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6)
            FROM durable_step AS s
            WHERE s.shard = durable_run.shard AND s.run_id = durable_run.id
        ) > progress THEN 0
        ELSE crashes
    END
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND (control & ?) = 0 AND (woken & ?) = 0;
