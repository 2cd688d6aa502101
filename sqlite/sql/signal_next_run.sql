-- The first run, from an ID on, for which a signal waits that nobody has received (step).
SELECT run_id
FROM durable_signal
WHERE shard = ? AND run_id >= ? AND step IS NULL
ORDER BY run_id
LIMIT 1;
