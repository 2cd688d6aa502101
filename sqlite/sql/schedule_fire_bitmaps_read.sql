-- Reads the bitmaps of past fires of an hour.
SELECT bits
FROM durable_fired
WHERE schedule = ? AND hour = ?;
