-- Pauses a queue. A queue that is paused keeps the time, the actor and the reason of its pause.
UPDATE durable_queue
SET paused_by = CASE WHEN paused_at IS NULL THEN ?3 ELSE paused_by END,
    pause_reason = CASE WHEN paused_at IS NULL THEN ?4 ELSE pause_reason END,
    last_change = CASE WHEN paused_at IS NULL THEN ?5 ELSE last_change END,
    paused_at = coalesce(paused_at, ?2)
WHERE name = ?1 AND NOT deleted;
