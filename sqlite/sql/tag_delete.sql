-- Removes a tag of a run.
DELETE FROM durable_tag WHERE shard = ? AND run_id = ? AND key = ?;
