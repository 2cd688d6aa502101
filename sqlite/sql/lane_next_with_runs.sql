-- Selects the lane after the given one that has a run with a wake time, and its earliest wake time, due or not. A poll of an
-- idle database executes only this, without the write lock.
SELECT lane, queue, workflow, version, diverged, priority, wake_at
FROM durable_run
WHERE wake_at IS NOT NULL AND lane > ?
ORDER BY lane, wake_at
LIMIT 1;
