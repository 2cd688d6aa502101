-- Selects the earliest wake time of one lane that is still to come.
SELECT wake_at
FROM durable_run
WHERE lane = ? AND wake_at > ?
ORDER BY wake_at
LIMIT 1;
