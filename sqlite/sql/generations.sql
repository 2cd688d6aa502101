-- Selects the ?4 newest superseded generations of a run before the number ?3, the newest first. The first parameter selects the
-- payloads: 1 the input, 2 the output and the error. A generation is left out if the payloads of those after the next newer one have ?5
-- bytes, so that there are always two.
SELECT number, archive_id, request, status, control, priority, epoch, verb, actor, reason, from_step, at,
       created_at, started_at, ended_at, deadline_at, paused_at, cancelled_at, workflow, queue, version, trace,
       run_reason, paused_by, cancelled_by, cancel_reason,
       CASE WHEN ?1 & 1 THEN input END, CASE WHEN ?1 & 2 THEN output END, CASE WHEN ?1 & 2 THEN error END, detail
FROM (
    SELECT *, sum(coalesce(length(input), 0) + coalesce(length(output), 0) + coalesce(length(error), 0))
                  OVER (ORDER BY number DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS bytes_before
    FROM (
        SELECT * FROM durable_generation
        WHERE run_id = ?2 AND number < ?3
        ORDER BY number DESC LIMIT ?4 + 0
    )
)
WHERE coalesce(bytes_before, 0) < ?5
ORDER BY number DESC;
