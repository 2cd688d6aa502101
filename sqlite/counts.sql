-- How many runs of a tree are in each status.
WITH RECURSIVE tree(shard, id) AS (
    SELECT shard, id FROM durable_run WHERE shard = ? AND id = ?
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT run.status, count(*)
FROM tree CROSS JOIN durable_run AS run
WHERE run.shard = tree.shard AND run.id = tree.id
GROUP BY run.status;
