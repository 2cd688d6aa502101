-- Writes a schedule.
UPDATE durable_schedule
SET state = CAST(? AS BLOB), next_at = ?, waiting_at = ?, last_run = ?, paused = ?, cancels = ?, fires = ?
WHERE name = ?;
