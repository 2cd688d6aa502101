-- Selects a run and all its descendants, with the columns that a control request needs.
WITH RECURSIVE tree(shard, id) AS (
    SELECT shard, id FROM durable_run WHERE shard = ? AND id = ?
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT run.id, run.parent_id, run.status, run.epoch, run.control, run.owner, run.detached, run.paused_at
FROM tree CROSS JOIN durable_run AS run
WHERE run.shard = tree.shard AND run.id = tree.id;
