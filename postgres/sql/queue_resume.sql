-- Resumes a queue.
UPDATE durable.queue AS q
SET paused_at = NULL, paused_by = NULL, pause_reason = NULL
WHERE q.name = $1::text AND NOT q.deleted
RETURNING q.name;
