-- Deletes the tags of a run.
DELETE FROM durable_tag WHERE shard = ? AND run_id = ?;
