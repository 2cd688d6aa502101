-- Selects the tags of a run.
SELECT key, value
FROM durable_tag
WHERE shard = ? AND run_id = ?
ORDER BY key;
