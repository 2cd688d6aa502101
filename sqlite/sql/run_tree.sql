-- Selects a run and its descendants, without payloads, parents before their children. ?3 tells whether the children of superseded
-- generations are among them, whose parent is the archive ID of the generation.
WITH RECURSIVE tree(shard, id, depth) AS (
    SELECT shard, id, 0 FROM durable_run WHERE shard = ?1 AND id = ?2
    UNION ALL
    SELECT child.shard, child.id, tree.depth + 1
    FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = tree.shard AND child.parent_id <> x''
    UNION ALL
    SELECT child.shard, child.id, tree.depth + 1
    FROM tree CROSS JOIN durable_generation AS g CROSS JOIN durable_run AS child
    WHERE ?3 AND g.run_id = tree.id AND child.parent_id = g.archive_id AND child.shard = tree.shard AND child.parent_id <> x''
)
SELECT run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.priority, run.status, run.epoch, run.owner,
       CASE WHEN run.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable_step AS s WHERE s.run_id = run.id) > run.progress THEN 0 ELSE run.crashes END,
       NULL, NULL, run.error,
       run.reason, run.trace, run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at, run.woken, run.progress
FROM tree CROSS JOIN durable_run AS run
WHERE run.shard = tree.shard AND run.id = tree.id
ORDER BY tree.depth, run.id;
