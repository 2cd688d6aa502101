-- Returns how many checkpoints of each kind the live runs (status below 5) of a tree wait for at $3:
-- those that are not terminal (3, 4), and sleeps (kind 3) that are not over.
WITH RECURSIVE tree AS (
    SELECT r.shard, r.id, r.status FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid
    UNION ALL
    SELECT child.shard, child.id, child.status
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.status FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        OFFSET 0
    ) AS child
)
SELECT step.kind, sum(step.open)::bigint
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
