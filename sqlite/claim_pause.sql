-- Sets a due run aside (4) that keeps killing the process that runs it.
UPDATE durable_run
SET status = 4, owner = NULL, wake_at = NULL, reason = ?, crashes = ?, progress = ?
WHERE shard = ? AND id = ? AND wake_at <= ?;
