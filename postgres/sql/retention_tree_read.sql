-- Returns the runs of the trees with the roots $1, $2, and their superseded generations, which have a number. A root is a run,
-- or the archive ID of a superseded generation.
WITH RECURSIVE tree AS (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT tree.shard, child.id
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.id FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        UNION ALL
        SELECT g.archive_id FROM durable.generation AS g
        WHERE g.shard = tree.shard AND g.run_id = tree.id
        OFFSET 0
    ) AS child
)
SELECT node.id, node.parent_id, node.number, node.status, node.epoch, node.ended_at, node.detached, node.in_queue
FROM tree
CROSS JOIN LATERAL (
    SELECT r.id, r.parent_id, 0 AS number, r.status, r.epoch, r.ended_at, r.detached, r.lane & 3 > 0 AS in_queue
    FROM durable.run AS r
    WHERE r.shard = tree.shard AND r.id = tree.id
    UNION ALL
    SELECT g.archive_id, g.run_id, g.number, g.status, g.epoch, g.at, false, false
    FROM durable.generation AS g
    WHERE g.shard = tree.shard AND g.archive_id = tree.id
    OFFSET 0
) AS node;
