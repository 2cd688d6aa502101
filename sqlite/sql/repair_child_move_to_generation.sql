-- Moves a child of a run to the run's superseded generation.
UPDATE durable_run SET parent_id = ? WHERE shard = ? AND id = ? AND parent_id = ?;
