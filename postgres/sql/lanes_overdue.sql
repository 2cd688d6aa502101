-- Returns up to $3 lanes after $2, in their order, that have a run which was due at $1 and which a claim may
-- take, each with the run that has been due for longest. It needs two index probes for each lane with a run
-- that has a wake time, however many runs are due.
WITH RECURSIVE lane AS (
    (
        SELECT r.lane
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > $2::bigint
        ORDER BY r.lane
        LIMIT 1
    )
    UNION ALL
    SELECT ahead.lane
    FROM lane
    CROSS JOIN LATERAL (
        SELECT r.lane
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > lane.lane
        ORDER BY r.lane
        LIMIT 1
    ) AS ahead
)
SELECT longest.queue, longest.workflow, lane.lane, longest.id, longest.wake_at
FROM lane
CROSS JOIN LATERAL (
    SELECT r.queue, r.workflow, r.id, r.wake_at
    FROM durable.run AS r
    WHERE r.lane = lane.lane AND r.wake_at <= $1::timestamptz
    ORDER BY r.wake_at
    LIMIT 1
) AS longest
WHERE lane.lane & 1 = 0 -- admission 0 or 2
LIMIT $3::integer;
