-- Selects the runs of a tree and their superseded generations, which have a number. The root is a run, or the archive ID of a
-- superseded generation.
WITH RECURSIVE tree(id) AS (
    SELECT ?1
    UNION
    SELECT child.id FROM tree CROSS JOIN durable_run AS child
    WHERE child.parent_id = tree.id AND child.shard = ?2 AND child.parent_id <> x''
    UNION
    SELECT g.archive_id FROM tree CROSS JOIN durable_generation AS g
    WHERE g.run_id = tree.id
)
SELECT r.id, r.parent_id, 0 AS number, r.status, r.epoch, r.ended_at, r.detached, r.lane & 3 > 0
FROM tree CROSS JOIN durable_run AS r
WHERE r.id = tree.id
UNION ALL
SELECT g.archive_id, g.run_id, g.number, g.status, g.epoch, g.at, 0, 0
FROM tree CROSS JOIN durable_generation AS g
WHERE g.archive_id = tree.id;
