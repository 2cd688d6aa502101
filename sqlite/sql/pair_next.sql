-- The next queue and workflow that has a run to wake, after another.
SELECT queue, workflow
FROM durable_run
WHERE wake_at IS NOT NULL AND queue = ?1 AND workflow > ?2
ORDER BY queue, workflow
LIMIT 1;
