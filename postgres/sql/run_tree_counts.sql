-- Returns, for one moment, how many runs of a tree, including the children of superseded generations, have each status (then kind is 0),
-- how many of those have never been executed and are scheduled after $3, and how many checkpoints of each kind the live runs (status below
-- 5) wait for at $3 (then status is 0): those that are not terminal (3, 4), and sleeps (kind 3) that are not over.
WITH RECURSIVE tree AS (
    SELECT r.shard, r.id, r.status, r.epoch, r.wake_at FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid
    UNION ALL
    SELECT child.shard, child.id, child.status, child.epoch, child.wake_at
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.status, r.epoch, r.wake_at FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        UNION ALL
        SELECT old.shard, old.id, old.status, old.epoch, old.wake_at
        FROM durable.generation AS g
        CROSS JOIN LATERAL (
            SELECT r.shard, r.id, r.status, r.epoch, r.wake_at FROM durable.run AS r
            WHERE r.parent_id = g.archive_id AND r.shard = tree.shard
            OFFSET 0
        ) AS old
        WHERE g.run_id = tree.id AND g.shard = tree.shard
        OFFSET 0
    ) AS child
)
SELECT tree.status, 0::smallint AS kind, count(*), count(*) FILTER (WHERE tree.status = 1 AND tree.epoch = 0 AND tree.wake_at > $3::timestamptz)
FROM tree
GROUP BY tree.status
UNION ALL
SELECT 0::smallint, step.kind, sum(step.open)::bigint, 0
FROM tree
CROSS JOIN LATERAL (
    SELECT s.kind, count(*) AS open
    FROM durable.step AS s
    WHERE s.shard = tree.shard AND s.run_id = tree.id AND tree.status < 5
      AND (s.status < 3 OR (s.kind = 3 AND s.next_at > $3::timestamptz))
    GROUP BY s.kind
    OFFSET 0
) AS step
GROUP BY step.kind;
