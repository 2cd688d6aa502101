-- Selects, of at most ?4 runs in the order of their IDs, after ?1 and before ?2, those that ended before ?3 and have no parent,
-- whose parent was deleted, or that are detached children of a superseded generation, and the last run that it reads.
SELECT page.id, page.workflow, page.status, page.epoch, page.ended_at, page.number, page.ended
FROM (
    SELECT r.id, r.workflow, r.status, r.epoch, r.ended_at, row_number() OVER (ORDER BY r.id) AS number,
           r.status >= 5 AND r.ended_at < ?3 AND (r.parent_id = x'' OR NOT EXISTS (
               SELECT 1 FROM durable_run AS parent WHERE parent.id = r.parent_id
           ) AND (r.detached OR NOT EXISTS (
               SELECT 1 FROM durable_generation AS g WHERE g.archive_id = r.parent_id
           ))) AS ended
    FROM (
        SELECT id, parent_id, workflow, status, epoch, ended_at, detached FROM durable_run
        WHERE id > ?1 AND id < ?2
        ORDER BY id
        LIMIT ?4
    ) AS r
) AS page
WHERE page.ended OR page.number = ?4
ORDER BY page.id;
