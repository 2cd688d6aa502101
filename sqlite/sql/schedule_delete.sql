-- Deletes a schedule.
DELETE FROM durable_schedule
WHERE name = ?;
