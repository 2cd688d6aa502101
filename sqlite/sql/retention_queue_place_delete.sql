-- Deletes the place of a run.
DELETE FROM durable_place WHERE shard = ? AND run_id = ?;
