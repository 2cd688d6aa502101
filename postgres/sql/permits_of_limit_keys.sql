-- Returns the permits of limit keys that are held (3) or offered (2), and of those that wait (1) in each limit key the first
-- $3 that have missed an offer, and the first $3 that have not, in order, with the states of their runs.
SELECT item.ordinal, p.run_id, p.step, p.status, p.epoch, p.attempt, p.units, p.priority, p.missed, p.arrived_at, p.granted_at, p.until_at,
       run.status, run.epoch, run.control, run.wake_at
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS item(limit_name, key, ordinal)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT p.* FROM durable.permit AS p
        WHERE p.limit_name = item.limit_name AND p.key = item.key AND p.status >= 2
        OFFSET 0
    ) AS taken
    UNION ALL
    SELECT * FROM (
        SELECT p.* FROM durable.permit AS p
        WHERE p.limit_name = item.limit_name AND p.key = item.key AND p.status = 1 AND p.missed
        ORDER BY p.priority DESC, p.arrived_at, p.run_id, p.step
        LIMIT $3::integer
    ) AS missed
    UNION ALL
    SELECT * FROM (
        SELECT p.* FROM durable.permit AS p
        WHERE p.limit_name = item.limit_name AND p.key = item.key AND p.status = 1 AND NOT p.missed
        ORDER BY p.priority DESC, p.arrived_at, p.run_id, p.step
        LIMIT $3::integer
    ) AS waiting
) AS p
LEFT JOIN LATERAL (
    SELECT r.status, r.epoch, r.control, r.wake_at FROM durable.run AS r
    WHERE r.shard = p.shard AND r.id = p.run_id
    OFFSET 0
) AS run ON true
ORDER BY item.ordinal, p.status DESC, p.missed DESC, p.priority DESC, p.arrived_at, p.run_id, p.step;
