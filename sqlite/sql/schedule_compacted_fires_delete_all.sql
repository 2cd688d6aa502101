-- Deletes the folded fires of a schedule.
DELETE FROM durable_fired
WHERE schedule = ?;
