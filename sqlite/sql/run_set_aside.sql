-- Counts a run that was set aside (4) without being asked to as paused itself (1), so that
-- a resume brings it back.
UPDATE durable_run
SET control = control | 1, paused_at = ?
WHERE shard = ? AND id = ? AND epoch = ? AND status = 4 AND (control & 3) = 0;
