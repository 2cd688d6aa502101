-- Returns how many runs of a tree have each status, and how many of those have never been executed and
-- are scheduled after $3.
WITH RECURSIVE tree AS (
    SELECT r.shard, r.id, r.status, r.epoch, r.wake_at FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid
    UNION ALL
    SELECT child.shard, child.id, child.status, child.epoch, child.wake_at
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.status, r.epoch, r.wake_at FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        OFFSET 0
    ) AS child
)
SELECT tree.status, count(*), count(*) FILTER (WHERE tree.status = 1 AND tree.epoch = 0 AND tree.wake_at > $3::timestamptz)
FROM tree
GROUP BY tree.status;
