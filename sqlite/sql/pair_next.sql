-- Selects the next queue and workflow, after the given one, that has a run with a wake time.
SELECT queue, workflow
FROM durable_run
WHERE wake_at IS NOT NULL AND queue = ?1 AND workflow > ?2
ORDER BY queue, workflow
LIMIT 1;
