-- The signal for which the caller's key was used.
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ? AND run_id = ? AND key = ?;
