-- Deletes the signals of a run.
DELETE FROM durable_signal WHERE shard = ? AND run_id = ?;
