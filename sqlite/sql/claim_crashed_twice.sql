-- The due runs of one queue and workflow that have, or would now have, two crashes:
-- suspects, of which a claim takes none or one.
SELECT shard, id, wake_at
FROM durable_run
WHERE queue = ? AND workflow = ? AND wake_at <= ? AND crashes > 0 AND crashes + (status = 2) >= 2
ORDER BY wake_at
LIMIT ? + 0;
