-- A run and everything beneath it, as an order has to see it: what was done by a step, a
-- transaction or a child (1, 2, 6), a compensation (8), or what the run did to others or to its tags
-- (9 to 12), may have to be undone.
WITH RECURSIVE tree(shard, id) AS (
    SELECT shard, id FROM durable_run WHERE shard = ? AND id = ?
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT run.id, run.parent_id, run.status, run.epoch, run.control, run.owner, run.detached,
       EXISTS (SELECT 1 FROM durable_step AS step WHERE step.shard = run.shard AND step.run_id = run.id AND step.kind IN (1, 2, 6, 8, 9, 10, 11, 12, 15)),
       run.paused_at
FROM tree CROSS JOIN durable_run AS run
WHERE run.shard = tree.shard AND run.id = tree.id;
