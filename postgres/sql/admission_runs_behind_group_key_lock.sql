-- Returns the first $5 runs of each part ($3, $4) of those behind the keys $2 of the queue, and locks them. The columns of
-- runs that another transaction has locked are NULL.
SELECT item.ordinal, part.ordinal, p.run_id, r.admission, r.started, r.status, r.control, r.wake_at, r.deadline_at, p.root, p.priority,
       p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM unnest($2::text[]) WITH ORDINALITY AS item(key, ordinal)
CROSS JOIN LATERAL (
    SELECT FROM durable.queue_key AS k WHERE k.queue = $1::text AND k.key = item.key AND k.behind > 0 OFFSET 0
) AS k
CROSS JOIN unnest($3::boolean[], $4::boolean[]) WITH ORDINALITY AS part(begun, root, ordinal)
CROSS JOIN LATERAL (
    SELECT p.*
    FROM durable.place AS p
    WHERE p.queue = $1::text AND p.key = item.key AND p.state = 3 AND p.begun = part.begun AND p.root = part.root
    ORDER BY p.priority DESC, p.arrived_at, p.run_id
    LIMIT $5::integer
) AS p
LEFT JOIN LATERAL (
    SELECT r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
    FROM durable.run AS r
    WHERE r.shard = p.shard AND r.id = p.run_id
    FOR UPDATE SKIP LOCKED
) AS r ON true
ORDER BY item.ordinal, part.ordinal, p.priority DESC, p.arrived_at, p.run_id;
