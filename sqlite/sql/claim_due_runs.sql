-- Selects the due runs of one lane that are not suspects, oldest first.
SELECT shard, id, wake_at
FROM durable_run
WHERE lane = ? AND wake_at <= ? AND crashes + (status = 2) < 2
ORDER BY wake_at
LIMIT ? + 0;
