-- Selects the first workflow of the next queue that has a run with a wake time.
SELECT queue, workflow
FROM durable_run
WHERE wake_at IS NOT NULL AND queue > ?
ORDER BY queue, workflow
LIMIT 1;
