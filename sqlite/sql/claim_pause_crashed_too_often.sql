-- Pauses (4) a due run that has crashed too often. It is marked as paused itself (1), so that a resume continues it.
UPDATE durable_run
SET status = 4, control = control | 1, owner = NULL, wake_at = NULL, woken = 0, reason = ?, paused_at = ?, crashes = ?, progress = ?,
    lost_at = ?, lost_by = CASE WHEN status = 2 THEN owner ELSE lost_by END
WHERE shard = ? AND id = ? AND wake_at <= ?;
