-- Reads the fires of the latest times of a schedule, or of the latest before ?3, the newest first.
SELECT at, fired_at, kind, outcome, run_id
FROM durable_fire
WHERE schedule = ?1 AND (?3 IS NULL OR at < ?3)
ORDER BY at DESC
LIMIT ?2 + 0;
