-- Deletes the place of a run that has ended.
DELETE FROM durable_place
WHERE shard = ? AND run_id = ?;
