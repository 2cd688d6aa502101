-- Selects a signal by its ID. It is executed after a write that changed no row.
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ? AND run_id = ? AND id = ?;
