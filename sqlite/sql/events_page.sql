-- Selects the events after an event.
SELECT id, run_id, type, at, actor, reason, old_value, new_value
FROM durable_event
WHERE id > ?
ORDER BY id
LIMIT ? + 0;
