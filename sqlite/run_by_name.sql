-- One run by its name under its parent (NULL: a root).
SELECT id, parent_id, name, workflow, version, queue, status, epoch, owner, crashes, input, output, error,
       reason, trace, created_at, started_at, ended_at, wake_at, deadline_at,
       detached, control, paused_by, cancelled_by, cancel_reason, paused_at, cancelled_at, woken, progress
FROM durable_run
WHERE name = ? AND parent_id = coalesce(?, x'') AND shard = ?;
