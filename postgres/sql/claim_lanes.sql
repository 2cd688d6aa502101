-- Prepares a claim, in its transaction. It looks for lanes with runs in the gaps between the lanes that
-- this process knows: each pair of $1 and $2 bounds a gap, exclusively. A known lane costs nothing here, a
-- gap without lanes one index probe, and a new lane one further probe, however many runs it has. Lanes that
-- are never claimed from are returned too, so that they are known the next time.
--
-- A setting that ends with the transaction tells claim.sql, the next statement, whether there are new lanes.
--
-- ahead is when the next run of the lanes $3 is due after $4.
WITH RECURSIVE found AS (
    SELECT gap.high, r.lane, r.queue, r.workflow, r.priority
    FROM unnest($1::bigint[], $2::bigint[]) AS gap(low, high)
    CROSS JOIN LATERAL (
        SELECT r.lane, r.queue, r.workflow, r.priority
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > gap.low AND r.lane < gap.high
        ORDER BY r.lane
        LIMIT 1
    ) AS r
    UNION ALL
    SELECT found.high, r.lane, r.queue, r.workflow, r.priority
    FROM found
    CROSS JOIN LATERAL (
        SELECT r.lane, r.queue, r.workflow, r.priority
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > found.lane AND r.lane < found.high
        ORDER BY r.lane
        LIMIT 1
    ) AS r
), ahead AS (
    SELECT min(r.wake_at) AS wake_at
    FROM unnest($3::bigint[]) AS own(lane)
    CROSS JOIN LATERAL (
        SELECT r.wake_at
        FROM durable.run AS r
        WHERE r.lane = own.lane AND r.wake_at > $4::timestamptz
        ORDER BY r.wake_at
        LIMIT 1
    ) AS r
)
SELECT set_config('durable_claim.unknown', (count(*) > 0)::text, true) = 'true' AS unknown,
       (SELECT ahead.wake_at FROM ahead) AS ahead,
       array_agg(found.lane) AS lanes, array_agg(found.queue) AS queues, array_agg(found.workflow) AS workflows, array_agg(found.priority) AS priorities
FROM found;
