-- Selects the state of a run whose step asks for a permit, and the end of its lease.
SELECT status, epoch, control, wake_at
FROM durable_run
WHERE shard = ? AND id = ?;
