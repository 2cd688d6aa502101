-- Deletes the permits of a run.
DELETE FROM durable_permit WHERE shard = ? AND run_id = ?;
