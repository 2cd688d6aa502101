-- The event of a cursor, if it is there, and the oldest one.
SELECT id, at
FROM durable_event
WHERE id IN (?, (SELECT min(id) FROM durable_event));
