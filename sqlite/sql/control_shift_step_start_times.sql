-- Moves the start times of a paused run's steps (kind 1), Tx steps (2) and compensations (8) that
-- have no outcome by the duration of the pause, because total timeouts count from these times.
UPDATE durable_step
SET started_at = min(started_at + (?1 - ?2), ?1)
WHERE shard = ?3 AND run_id = ?4 AND status < 3 AND kind IN (1, 2, 8);
