-- A run's tags.
SELECT key, value
FROM durable_tag
WHERE shard = ? AND run_id = ?
ORDER BY key;
