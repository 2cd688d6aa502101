-- Marks a run that was paused (4) without a request as paused itself (1), so that a resume continues it.
UPDATE durable_run
SET control = control | 1, paused_at = ?
WHERE shard = ? AND id = ? AND epoch = ? AND status = 4 AND (control & 3) = 0;
