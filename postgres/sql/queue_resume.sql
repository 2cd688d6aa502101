-- Resumes a queue.
UPDATE durable.queue AS q
SET paused_at = NULL, paused_by = NULL, pause_reason = NULL,
    last_change = CASE WHEN q.paused_at IS NULL THEN q.last_change ELSE $2::text END
WHERE q.name = $1::text AND NOT q.deleted
RETURNING q.name;
