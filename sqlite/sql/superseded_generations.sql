-- Selects the ?4 newest superseded generations of a run before the number ?3, the newest first. The first parameter selects the
-- payloads: 1 the input, 2 the output and the error.
SELECT number, archive_id, request, status, control, priority, epoch, verb, actor, reason, from_step, at,
       created_at, started_at, ended_at, deadline_at, paused_at, cancelled_at, workflow, queue, version, trace,
       run_reason, paused_by, cancelled_by, cancel_reason,
       CASE WHEN ?1 & 1 THEN input END, CASE WHEN ?1 & 2 THEN output END, CASE WHEN ?1 & 2 THEN error END, detail,
       coalesce(length(input), 0) + coalesce(length(output), 0) + coalesce(length(error), 0)
FROM durable_generation
WHERE run_id = ?2 AND number < ?3
ORDER BY number DESC LIMIT ?4 + 0;
