-- Selects the newest event.
SELECT id, at
FROM durable_event
WHERE id = (SELECT max(id) FROM durable_event);
