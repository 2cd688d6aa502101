-- The earliest wake time ahead of one queue and workflow.
SELECT wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at > ?
ORDER BY wake_at
LIMIT 1;
