-- Selects the events before an event, the newest first.
SELECT id, run_id, type, at, actor, reason, old_value, new_value
FROM durable_event
WHERE id < ?
ORDER BY id DESC
LIMIT ? + 0;
