-- Returns the $6 newest superseded generations of a run before the number $5, the newest first. $3 and $4 tell whether to read the
-- input, and the output and the error. A generation is left out if the payloads of those after the next newer one have $7 bytes, so that
-- there are always two.
SELECT g.number, g.archive_id, g.request, g.status, g.control, g.priority, g.epoch, g.verb, coalesce(g.actor, ''), coalesce(g.reason, ''),
       coalesce(g.from_step, ''), g.at, g.created_at, g.started_at, g.ended_at, g.deadline_at, g.paused_at, g.cancelled_at,
       g.workflow, g.queue, g.version, g.trace, coalesce(g.run_reason, ''), coalesce(g.paused_by, ''), coalesce(g.cancelled_by, ''),
       coalesce(g.cancel_reason, ''), CASE WHEN $3::boolean THEN g.input END, CASE WHEN $4::boolean THEN g.output END,
       CASE WHEN $4::boolean THEN g.error END, g.detail, g.stored_bytes
FROM (
    SELECT one.*, sum(one.stored_bytes) OVER (ORDER BY one.number DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS bytes_before
    FROM (
        SELECT g.*, coalesce(octet_length(g.input), 0) + coalesce(octet_length(g.output), 0) + coalesce(octet_length(g.error), 0) AS stored_bytes
        FROM durable.generation AS g
        WHERE g.shard = $1::smallint AND g.run_id = $2::uuid AND g.number < $5::integer
        ORDER BY g.number DESC LIMIT $6::integer
    ) AS one
) AS g
WHERE coalesce(g.bytes_before, 0) < $7::bigint
ORDER BY g.number DESC;
