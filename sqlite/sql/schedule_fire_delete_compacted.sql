-- Deletes a fire that has been folded.
DELETE FROM durable_fire
WHERE schedule = ? AND at = ?;
