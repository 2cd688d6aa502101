-- Selects the due runs of one queue and workflow that are not suspects, oldest first.
SELECT shard, id, wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at <= ? AND crashes + (status = 2) < 2
ORDER BY wake_at
LIMIT ? + 0;
