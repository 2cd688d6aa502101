-- Deletes the bitmaps of past fires of a schedule.
DELETE FROM durable_fired
WHERE schedule = ?;
