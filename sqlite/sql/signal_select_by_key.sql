-- Selects the signal that was sent with the caller's key.
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ? AND run_id = ? AND key = ?;
