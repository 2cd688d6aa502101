-- Reads the state of a run that starts with one key lead to.
SELECT name, status, control, epoch, queue, priority, version
FROM durable_run
WHERE shard = ? AND id = ?;
