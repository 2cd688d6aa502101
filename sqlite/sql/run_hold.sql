-- Releases a run, or pauses it, since the database does not take what it has to write; see
-- finish.go. Only the epoch that still runs it (2) may.
UPDATE durable_run
SET status = ?, control = ?, owner = NULL, wake_at = ?, woken = 0, reason = ?, paused_at = coalesce(?, paused_at),
    crashes = ?, progress = ?, trace = coalesce(?, trace)
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2;
