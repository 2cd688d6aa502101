-- Selects the run of a queue and workflow that has been due for the longest time.
SELECT id, wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at <= ?
ORDER BY wake_at
LIMIT 1;
