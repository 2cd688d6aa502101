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
FROM durable_run
WHERE id < ?2 AND id >= ?23
ORDER BY id DESC
LIMIT ?3 + 0;
