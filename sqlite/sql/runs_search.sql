-- Selects the newest ?3 runs below an ID, and whether the filter selects them. ?1 is not used.
SELECT id,
       (?4 = '' OR workflow = ?4)
       AND (?5 = '' OR queue = ?5)
       AND (?6 = 0 OR (?6 >> status) & 1)
       AND (?14 = 0 OR (?14 >> priority + 31) & 1)
       AND (?7 IS NULL OR created_at > ?7)
       AND (?8 IS NULL OR created_at < ?8)
       AND (?9 = 0 OR parent_id = x'')
       AND (?21 IS NULL OR coalesce(ended_at > ?21, 0))
       AND (?22 IS NULL OR coalesce(ended_at < ?22, 0))
       AND (?19 = '' OR version = ?19)
       AND (?20 IS NULL OR coalesce(owner = ?20, 0))
       AND name >= ?10 AND name < coalesce(?11, x'')
       AND (?16 = '' OR coalesce(failed_step = ?17 AND failed_type = ?18 AND workflow = ?16, 0))
       AND (?12 = '' OR EXISTS (
           SELECT 1 FROM durable_tag AS tag
           WHERE tag.shard = durable_run.shard AND tag.run_id = durable_run.id AND tag.key = ?12 AND (?13 = '' OR tag.value = ?13)
       ))
FROM durable_run
WHERE id < ?2 AND id >= ?23
ORDER BY id DESC
LIMIT ?3 + 0;
