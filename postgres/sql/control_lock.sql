-- Locks the given runs, all beneath them, and all above them, in the order of (shard, id), as far as
-- they have not ended, and returns how many they are. A child that is started meanwhile is not among them; so
-- control_tree.sql, the next statement, counts them again with a snapshot that began after the locks
-- were there, until nothing new is found: no child is started without the lock on its parent.
-- A run that nobody has executed (epoch 0) has no children, so none are looked for. A run that has
-- ended (5 and above) never changes again: it needs no lock, and leads at most to its children.
WITH RECURSIVE tree AS (
    SELECT item.shard, item.id, true AS executed, true AS live
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT child.shard, child.id, child.executed, child.live
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.epoch > 0 AS executed, r.status < 5 AS live FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard AND (r.status < 5 OR r.epoch > 0)
        OFFSET 0
    ) AS child
    WHERE tree.executed
), above AS (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT above.shard, own.parent_id
    FROM above
    CROSS JOIN LATERAL (
        SELECT r.parent_id FROM durable.run AS r
        WHERE r.shard = above.shard AND r.id = above.id
        OFFSET 0
    ) AS own
    WHERE own.parent_id IS NOT NULL -- not above, where it would choose run_child on a young table
), place AS MATERIALIZED (
    SELECT tree.shard, tree.id FROM tree
    WHERE tree.live
    UNION
    SELECT above.shard, above.id FROM above
    ORDER BY shard, id
)
SELECT count(*)
FROM place
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard = place.shard AND r.id = place.id AND r.status < 5
    FOR NO KEY UPDATE
) AS run;
