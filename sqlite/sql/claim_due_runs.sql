-- Selects the due runs of one lane that are not suspects, oldest first. Runs that were never executed have the epoch 0.
SELECT shard, id, wake_at
FROM durable_run
WHERE lane = ? AND wake_at <= ? AND epoch >= ? AND epoch <= ? AND crashes + (status = 2) < 2
ORDER BY wake_at
LIMIT ? + 0;
