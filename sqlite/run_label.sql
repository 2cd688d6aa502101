-- What people call a run.
SELECT name, workflow
FROM durable_run
WHERE shard = ? AND id = ?;
