-- Reads one schedule.
SELECT name, state, next_at, waiting_at, last_run, paused, cancels, fires
FROM durable_schedule
WHERE name = ?;
