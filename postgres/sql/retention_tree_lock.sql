-- Locks the ended runs (5 and above) of the trees with the roots $1, $2, in the order of (shard, id), and returns them. It
-- skips those that another transaction has locked. A root is a run, or the archive ID of a superseded generation.
WITH RECURSIVE tree AS (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT tree.shard, child.id
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.id FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        UNION ALL
        SELECT g.archive_id FROM durable.generation AS g
        WHERE g.shard = tree.shard AND g.run_id = tree.id
        OFFSET 0
    ) AS child
), place AS MATERIALIZED (
    SELECT tree.shard, tree.id FROM tree ORDER BY shard, id
)
SELECT run.id
FROM place
CROSS JOIN LATERAL (
    SELECT r.id FROM durable.run AS r
    WHERE r.shard = place.shard AND r.id = place.id AND r.status >= 5
    FOR UPDATE SKIP LOCKED
) AS run;
