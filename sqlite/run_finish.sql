-- Ends one ownership of a run: finished, parked, given back or set aside. Only the
-- epoch that still runs it (2) may.
UPDATE durable_run
SET status = ?,
    output = CAST(? AS BLOB),
    error = CAST(? AS BLOB),
    reason = ?,
    trace = coalesce(?, trace),
    wake_at = ?,
    ended_at = ?,
    owner = NULL
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2;
