-- Selects a run by its UUID. The first parameter selects the payloads: 1 the input, 2 the output and the error.
SELECT id, parent_id, name, workflow, version, queue, priority, status, epoch, owner, crashes,
       CASE WHEN ?1 & 1 THEN input END, CASE WHEN ?1 & 2 THEN output END, CASE WHEN ?1 & 2 THEN error END,
       reason, trace, created_at, started_at, ended_at, wake_at, deadline_at,
       detached, control, paused_by, cancelled_by, cancel_reason, paused_at, cancelled_at, woken, progress
FROM durable_run
WHERE shard = ?2 AND id = ?3;
