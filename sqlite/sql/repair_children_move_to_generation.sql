-- Moves all children of a run to the run's superseded generation.
UPDATE durable_run SET parent_id = ? WHERE shard = ? AND parent_id = ? AND parent_id <> x'';
