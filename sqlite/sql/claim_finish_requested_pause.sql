-- Pauses (4) a run that was running (2) when its pause was requested (control 1, 2), and whose worker died before it
-- released the run. This does not count as a crash.
UPDATE durable_run
SET status = 4, lost_at = ?, lost_by = owner, owner = NULL, wake_at = NULL, woken = 0
WHERE shard = ? AND id = ? AND wake_at <= ? AND status = 2 AND (control & 3) <> 0;
