-- Counts the runs of a tree by status, and those that have never been executed and begin only after ?3.
WITH RECURSIVE tree(shard, id) AS (
    SELECT shard, id FROM durable_run WHERE shard = ?1 AND id = ?2
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT run.status, count(*), count(*) FILTER (WHERE run.status = 1 AND run.epoch = 0 AND run.wake_at > ?3)
FROM tree CROSS JOIN durable_run AS run
WHERE run.shard = tree.shard AND run.id = tree.id
GROUP BY run.status;
