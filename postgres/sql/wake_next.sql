-- Returns when the next run of these queues and workflows is due, with one index probe per pair.
SELECT min(ahead.wake_at)
FROM unnest($1::text[], $2::text[]) AS pair(queue, workflow)
CROSS JOIN LATERAL (
    SELECT r.wake_at
    FROM durable.run AS r
    WHERE r.queue = pair.queue AND r.workflow = pair.workflow AND r.wake_at > $3::timestamptz
    ORDER BY r.wake_at
    LIMIT 1
) AS ahead;
