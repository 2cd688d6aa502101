-- Releases or pauses a run whose writes the database rejects; see end_ownership.go. The run must be running (2) at the given epoch.
UPDATE durable_run
SET status = ?, control = ?, owner = NULL, wake_at = ?, woken = 0, reason = ?, paused_at = coalesce(?, paused_at),
    crashes = ?, progress = ?, trace = coalesce(?, trace)
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2;
