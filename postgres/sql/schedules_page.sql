-- Reads the schedules after a name.
SELECT s.name, s.state, s.next_at, s.waiting_at, s.last_run, s.paused, s.cancels, s.fires
FROM durable.schedule AS s
WHERE s.name > $1::text
ORDER BY s.name
LIMIT $2::integer;
