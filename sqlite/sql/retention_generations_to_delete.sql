-- Selects, of at most ?4 superseded generations after the generation ?2 of the run ?1, those that were superseded before ?3 and are
-- not the newest superseded one of their run, and the last one that it reads.
SELECT page.run_id, page.number, page.archive_id, page.workflow, page.position, page.old
FROM (
    SELECT g.run_id, g.number, g.archive_id, g.workflow, row_number() OVER (ORDER BY g.run_id, g.number) AS position,
           g.at < ?3 AND EXISTS (
               SELECT 1 FROM durable_generation AS newer WHERE newer.run_id = g.run_id AND newer.number > g.number
           ) AS old
    FROM (
        SELECT run_id, number, archive_id, workflow, at FROM durable_generation
        WHERE (run_id, number) > (?1, ?2)
        ORDER BY run_id, number
        LIMIT ?4
    ) AS g
) AS page
WHERE page.old OR page.position = ?4
ORDER BY page.run_id, page.number;
