-- Resumes a queue.
UPDATE durable_queue
SET paused_at = NULL, paused_by = NULL, pause_reason = NULL
WHERE name = ? AND NOT deleted;
