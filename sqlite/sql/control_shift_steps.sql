-- Moves what a paused run waits for by as long as it was paused: sleeps (3), attempts, and
-- the ends of receives, unless they were over when it was paused (?2).
UPDATE durable_step
SET next_at = next_at + (?1 - ?2)
WHERE shard = ?3 AND run_id = ?4 AND next_at > ?2 AND (status < 3 OR kind = 3);
