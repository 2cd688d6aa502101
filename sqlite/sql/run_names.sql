-- What people call a run.
SELECT name, workflow, parent_id <> x''
FROM durable_run
WHERE shard = ? AND id = ?;
