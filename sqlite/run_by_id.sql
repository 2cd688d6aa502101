-- One run by its UUID.
SELECT id, parent_id, name, workflow, version, queue, status, epoch, owner, crashes, input, output, error,
       reason, trace, created_at, started_at, ended_at, wake_at, deadline_at, progress
FROM durable_run
WHERE shard = ? AND id = ?;
