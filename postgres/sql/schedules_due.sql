-- Reads the schedules that are due first. The caller compares next_at with the time, so that one statement
-- tells both what is due and when the next one is.
SELECT s.name, s.next_at
FROM durable.schedule AS s
WHERE s.next_at IS NOT NULL
ORDER BY s.next_at
LIMIT $1::integer;
