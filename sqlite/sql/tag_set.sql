-- Sets a tag of a run, if the run exists.
INSERT INTO durable_tag (shard, run_id, key, value)
SELECT shard, id,
       ?, -- key
       ? -- value
FROM durable_run
WHERE shard = ? AND id = ?
ON CONFLICT (shard, run_id, key) DO UPDATE SET value = excluded.value;
