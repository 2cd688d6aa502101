-- How many runs of a tree are in each status.
WITH RECURSIVE tree AS (
    SELECT r.shard, r.id, r.status FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid
    UNION ALL
    SELECT child.shard, child.id, child.status
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.status FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        OFFSET 0
    ) AS child
)
SELECT tree.status, count(*)
FROM tree
GROUP BY tree.status;
