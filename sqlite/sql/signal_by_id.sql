-- One signal, read back when a write of it did not take.
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ? AND run_id = ? AND id = ?;
