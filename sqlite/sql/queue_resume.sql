-- Resumes a queue.
UPDATE durable_queue
SET paused_at = NULL, paused_by = NULL, pause_reason = NULL,
    last_change = CASE WHEN paused_at IS NULL THEN last_change ELSE ?2 END
WHERE name = ?1 AND NOT deleted;
