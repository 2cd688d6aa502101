-- Counts the runs of a failure that the filter selects, among the newest ?3, and selects the one that ended last. ?1 and ?2 are
-- not used. Without such a run it returns no row.
WITH examined AS MATERIALIZED (
    SELECT run.id, run.ended_at,
           (?4 = '' OR run.workflow = ?4)
           AND (?5 = '' OR run.queue = ?5)
           AND (?6 = 0 OR (?6 >> run.status) & 1)
           AND (?14 = 0 OR (?14 >> run.priority + 31) & 1)
           AND (?7 IS NULL OR run.created_at > ?7)
           AND (?8 IS NULL OR run.created_at < ?8)
           AND (?9 = 0 OR run.parent_id = x'')
           AND (?19 = '' OR +run.version = ?19)
           AND (?20 IS NULL OR +run.owner = ?20)
           AND (?21 IS NULL OR +run.ended_at > ?21)
           AND (?22 IS NULL OR +run.ended_at < ?22)
           AND run.name >= ?10 AND run.name < coalesce(?11, x'')
           AND (?12 = '' OR EXISTS (
               SELECT 1 FROM durable_tag AS tag
               WHERE tag.shard = run.shard AND tag.run_id = run.id AND tag.key = ?12 AND (?13 = '' OR tag.value = ?13)
           )) AS matches
    FROM durable_run AS run INDEXED BY durable_run_failure
    WHERE run.failed_step IS NOT NULL AND run.workflow = ?16 AND run.failed_step = ?17 AND run.failed_type = ?18
    ORDER BY run.id DESC
    LIMIT ?3 + 0
), matched AS (
    SELECT count(*) AS runs, min(ended_at) AS first, max(ended_at) AS last FROM examined WHERE matches
)
SELECT matched.runs, (SELECT count(*) FROM examined), matched.first, matched.last, run.id, run.parent_id, run.name, run.status, run.error
FROM matched CROSS JOIN durable_run AS run
WHERE run.id = (SELECT id FROM examined WHERE matches ORDER BY ended_at DESC, id DESC LIMIT 1);
