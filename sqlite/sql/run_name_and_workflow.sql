-- Selects the name and the workflow of a run, and whether it is a child.
SELECT name, workflow, parent_id <> x''
FROM durable_run
WHERE shard = ? AND id = ?;
