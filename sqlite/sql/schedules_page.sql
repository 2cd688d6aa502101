-- Reads the schedules after a name.
SELECT name, state, next_at, waiting_at, last_run, paused, cancels, fires
FROM durable_schedule
WHERE name > ?
ORDER BY name
LIMIT ? + 0;
