-- Locks the given runs, their descendants and their ancestors in the order of (shard, id), except ended
-- runs, and returns how many it locked. A child that is started meanwhile is not among them. So the next
-- statement, control_run_tree_read.sql, counts them again with a snapshot that is newer than the locks, and both
-- are repeated until the numbers are equal: no child is started without the lock on its parent. A run
-- that nobody has executed (epoch 0) has no children, so the query does not search for them. A run that
-- has ended (5 and above) never changes again, so it needs no lock; the query only follows it to its
-- children.
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
    WHERE own.parent_id IS NOT NULL -- not in the subquery, where the planner would choose run_child on a young table
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
