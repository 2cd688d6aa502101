-- Counts, by kind, the open checkpoints of a tree's live runs (status below 5) at ?3: those that are not terminal (3, 4), and
-- sleeps (kind 3) that are not over.
WITH RECURSIVE tree(shard, id) AS (
    SELECT shard, id FROM durable_run WHERE shard = ?1 AND id = ?2
    UNION ALL
    SELECT child.shard, child.id
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT step.kind, count(*)
FROM tree CROSS JOIN durable_run AS run CROSS JOIN durable_step AS step
WHERE run.shard = tree.shard AND run.id = tree.id AND run.status < 5
  AND step.shard = run.shard AND step.run_id = run.id
  AND (step.status < 3 OR step.kind = 3 AND step.next_at > ?3)
GROUP BY step.kind;
