-- Counts, for one moment, the runs of a tree, including the children of superseded generations, by status (then kind is 0), those of them that have never been executed and begin only
-- after ?3, and by kind the open checkpoints of its live runs (status below 5) at ?3 (then status is 0): those that are not terminal
-- (3, 4), and sleeps (kind 3) that are not over.
WITH RECURSIVE tree(shard, id) AS (
    SELECT shard, id FROM durable_run WHERE shard = ?1 AND id = ?2
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_generation AS g CROSS JOIN durable_run AS child
    WHERE g.run_id = tree.id AND child.parent_id = g.archive_id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT run.status, 0 AS kind, count(*), count(*) FILTER (WHERE run.status = 1 AND run.epoch = 0 AND run.wake_at > ?3)
FROM tree CROSS JOIN durable_run AS run
WHERE run.shard = tree.shard AND run.id = tree.id
GROUP BY run.status
UNION ALL
SELECT 0, step.kind, count(*), 0
FROM tree CROSS JOIN durable_run AS run CROSS JOIN durable_step AS step
WHERE run.shard = tree.shard AND run.id = tree.id AND run.status < 5
  AND step.shard = run.shard AND step.run_id = run.id
  AND (step.status < 3 OR step.kind = 3 AND step.next_at > ?3)
GROUP BY step.kind;
