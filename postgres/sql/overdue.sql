-- Returns up to $4 queues and workflows, after ($2, $3) in their order, that have a run which was due at
-- $1, each with the run that has been due for longest. It needs two index probes for each queue and
-- workflow with a run that has a wake time, however many runs are due.
WITH RECURSIVE pair AS (
    (
        SELECT r.queue, r.workflow
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND (r.queue, r.workflow) > ($2::text, $3::text)
        ORDER BY r.queue, r.workflow
        LIMIT 1
    )
    UNION ALL
    SELECT ahead.queue, ahead.workflow
    FROM pair
    CROSS JOIN LATERAL (
        SELECT r.queue, r.workflow
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND (r.queue, r.workflow) > (pair.queue, pair.workflow)
        ORDER BY r.queue, r.workflow
        LIMIT 1
    ) AS ahead
)
SELECT pair.queue, pair.workflow, longest.id, longest.wake_at
FROM pair
CROSS JOIN LATERAL (
    SELECT r.id, r.wake_at
    FROM durable.run AS r
    WHERE r.queue = pair.queue AND r.workflow = pair.workflow AND r.wake_at <= $1::timestamptz
    ORDER BY r.wake_at
    LIMIT 1
) AS longest
LIMIT $4::integer;
