-- Selects the earliest wake time of one queue and workflow, due or not. A poll of an idle database executes only this, without
-- the write lock.
SELECT wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at IS NOT NULL
ORDER BY wake_at
LIMIT 1;
