-- Selects the first run, from an ID on, that has an unreceived signal.
SELECT run_id
FROM durable_signal
WHERE shard = ? AND run_id >= ? AND step IS NULL
ORDER BY run_id
LIMIT 1;
