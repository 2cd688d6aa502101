-- Selects the event of a cursor, if it exists, and the oldest event.
SELECT id, at
FROM durable_event
WHERE id IN (?, (SELECT min(id) FROM durable_event));
