-- Returns the given runs, their descendants and their ancestors, for the plan of a control request.
-- control_run_tree_lock.sql has locked them. Descendants that ended (5 and above) without being executed are left
-- out: no request changes them, and they have no children.
WITH RECURSIVE tree AS (
    SELECT run.shard, run.id, run.parent_id, run.status, run.epoch, run.control, run.owner, run.detached
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.parent_id, r.status, r.epoch, r.control, r.owner, r.detached
        FROM durable.run AS r
        WHERE r.shard = item.shard AND r.id = item.id
        OFFSET 0
    ) AS run
    UNION
    SELECT child.shard, child.id, child.parent_id, child.status, child.epoch, child.control, child.owner, child.detached
    FROM tree
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.parent_id, r.status, r.epoch, r.control, r.owner, r.detached
        FROM durable.run AS r
        WHERE r.parent_id = tree.id AND r.shard = tree.shard AND (r.status < 5 OR r.epoch > 0)
        OFFSET 0
    ) AS child
    WHERE tree.epoch > 0 -- a run that was never executed has no children
), above AS (
    SELECT run.shard, run.id, run.parent_id, run.status, run.epoch, run.control, run.owner, run.detached
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.parent_id, r.status, r.epoch, r.control, r.owner, r.detached
        FROM durable.run AS r
        WHERE r.shard = item.shard AND r.id = item.id
        OFFSET 0
    ) AS run
    UNION
    SELECT own.shard, own.id, own.parent_id, own.status, own.epoch, own.control, own.owner, own.detached
    FROM above
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.parent_id, r.status, r.epoch, r.control, r.owner, r.detached
        FROM durable.run AS r
        WHERE r.shard = above.shard AND r.id = above.parent_id
        OFFSET 0
    ) AS own
)
SELECT run.id, run.parent_id, run.status, run.epoch, run.control, run.owner, run.detached
FROM (SELECT * FROM tree UNION SELECT * FROM above) AS run;
