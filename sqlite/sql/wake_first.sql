-- The earliest wake time of one queue and workflow, due or not: what an idle poll
-- reads, without the write lock.
SELECT wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at IS NOT NULL
ORDER BY wake_at
LIMIT 1;
