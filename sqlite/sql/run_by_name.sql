-- Selects a run by its name and its parent (NULL: a root run), with the payloads as in run_by_id.sql.
SELECT id, parent_id, name, workflow, version, queue, priority, status, epoch, owner, crashes,
       CASE WHEN ?1 & 1 THEN input END, CASE WHEN ?1 & 2 THEN output END, CASE WHEN ?1 & 2 THEN error END,
       reason, trace, created_at, started_at, ended_at, wake_at, deadline_at,
       detached, control, paused_by, cancelled_by, cancel_reason, paused_at, cancelled_at, woken, progress
FROM durable_run
WHERE name = ?2 AND parent_id = coalesce(?3, x'') AND shard = ?4;
