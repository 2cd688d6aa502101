-- Deletes the fires of a schedule.
DELETE FROM durable_fire
WHERE schedule = ?;
