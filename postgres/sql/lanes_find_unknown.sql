-- Returns the lanes with runs in the gaps between the lanes that this process knows: each pair of $1 and $2
-- bounds a gap, exclusively. It needs one index probe for each gap and each lane, however many runs a lane
-- has. Lanes that are never claimed from are returned too, so that they are known the next time.
WITH RECURSIVE found AS (
    SELECT gap.high, r.lane, r.queue, r.workflow, r.version, r.diverged, r.priority
    FROM unnest($1::bigint[], $2::bigint[]) AS gap(low, high)
    CROSS JOIN LATERAL (
        SELECT r.lane, r.queue, r.workflow, r.version, r.diverged, r.priority
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > gap.low AND r.lane < gap.high
        ORDER BY r.lane
        LIMIT 1
    ) AS r
    UNION ALL
    SELECT found.high, r.lane, r.queue, r.workflow, r.version, r.diverged, r.priority
    FROM found
    CROSS JOIN LATERAL (
        SELECT r.lane, r.queue, r.workflow, r.version, r.diverged, r.priority
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > found.lane AND r.lane < found.high
        ORDER BY r.lane
        LIMIT 1
    ) AS r
)
SELECT found.lane, found.queue, found.workflow, found.version, coalesce(found.diverged, '') AS diverged, found.priority
FROM found;
