-- Selects the run of a lane that has been due for the longest time.
SELECT id, wake_at
FROM durable_run
WHERE lane = ? AND wake_at <= ?
ORDER BY wake_at
LIMIT 1;
