-- Returns a run and all its descendants, parents before their children, without input and output. $3 tells whether the children of
-- superseded generations are among them, whose parent is the archive ID of the generation.
WITH RECURSIVE tree AS (
    SELECT r.shard, r.id, 0 AS depth FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid
    UNION ALL
    SELECT child.shard, child.id, tree.depth + 1
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        UNION ALL
        SELECT old.shard, old.id
        FROM durable.generation AS g
        CROSS JOIN LATERAL (
            SELECT r.shard, r.id FROM durable.run AS r
            WHERE r.parent_id = g.archive_id AND r.shard = tree.shard
            OFFSET 0
        ) AS old
        WHERE g.run_id = tree.id AND g.shard = tree.shard AND $3::boolean
        OFFSET 0
    ) AS child
)
SELECT run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.priority, run.status, run.epoch, run.owner,
       CASE WHEN run.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = run.shard AND s.run_id = run.id) > run.progress
            THEN 0::smallint ELSE run.crashes END AS crashes, NULL::bytea, NULL::bytea, run.error, run.reason, run.trace,
       run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at
FROM tree
CROSS JOIN LATERAL (
    SELECT r.* FROM durable.run AS r
    WHERE r.shard = tree.shard AND r.id = tree.id
    OFFSET 0
) AS run
ORDER BY tree.depth, run.id;
