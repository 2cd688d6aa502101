-- Selects the earliest wake time of one queue and workflow that is still to come.
SELECT wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at > ?
ORDER BY wake_at
LIMIT 1;
