-- Locks the given runs, all beneath them, and all above them, in the order of (shard, id),
-- and answers them as they are then. A child that is started meanwhile is not among
-- them; so it is asked again, with a snapshot that began after the locks were there,
-- until nothing new is found: no child is started without the lock on its parent.
WITH RECURSIVE tree AS (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT child.shard, child.id
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard
        OFFSET 0
    ) AS child
), above AS (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT above.shard, own.parent_id
    FROM above
    CROSS JOIN LATERAL (
        SELECT r.parent_id FROM durable.run AS r
        WHERE r.shard = above.shard AND r.id = above.id AND r.parent_id IS NOT NULL
        OFFSET 0
    ) AS own
), place AS MATERIALIZED (
    SELECT tree.shard, tree.id FROM tree
    UNION
    SELECT above.shard, above.id FROM above
    ORDER BY shard, id
)
SELECT run.id, run.parent_id, run.status, run.epoch, run.control, run.owner, run.detached,
       EXISTS (
           SELECT FROM durable.step AS s
           WHERE s.shard = run.shard AND s.run_id = run.id AND s.kind IN (1, 2, 6, 8)
           OFFSET 0
       ) AS begun
FROM place
CROSS JOIN LATERAL (
    SELECT r.shard, r.id, r.parent_id, r.status, r.epoch, r.control, r.owner, r.detached
    FROM durable.run AS r
    WHERE r.shard = place.shard AND r.id = place.id
    FOR NO KEY UPDATE
) AS run;
