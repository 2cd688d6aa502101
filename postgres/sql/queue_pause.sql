-- Pauses a queue. A queue that is paused keeps the time, the actor and the reason of its pause.
UPDATE durable.queue AS q
SET paused_at = coalesce(q.paused_at, $2::timestamptz),
    paused_by = CASE WHEN q.paused_at IS NULL THEN $3::text ELSE q.paused_by END,
    pause_reason = CASE WHEN q.paused_at IS NULL THEN $4::text ELSE q.pause_reason END,
    last_change = CASE WHEN q.paused_at IS NULL THEN $5::text ELSE q.last_change END
WHERE q.name = $1::text AND NOT q.deleted
RETURNING q.name;
