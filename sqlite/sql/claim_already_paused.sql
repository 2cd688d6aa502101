-- Sets a run aside (4) that was running (2) when it was paused (control 1, 2), and whose
-- worker was gone before it left. That is no crash of the run's.
UPDATE durable_run
SET status = 4, lost_at = ?, lost_by = owner, owner = NULL, wake_at = NULL, woken = 0
WHERE shard = ? AND id = ? AND wake_at <= ? AND status = 2 AND (control & 3) <> 0;
