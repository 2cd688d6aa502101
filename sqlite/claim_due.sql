-- The due runs of one queue and workflow, oldest first, out of the wake index alone.
SELECT shard, id, wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at <= ?
ORDER BY wake_at
LIMIT ?;
