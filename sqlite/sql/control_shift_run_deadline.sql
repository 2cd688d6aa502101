-- Moves the deadline of a paused run (status 4) by the duration of the pause, unless the deadline
-- had passed before the pause.
UPDATE durable_run
SET deadline_at = deadline_at + (?1 - paused_at)
WHERE shard = ?2 AND id = ?3 AND status = 4 AND paused_at < ?1 AND deadline_at > paused_at;
