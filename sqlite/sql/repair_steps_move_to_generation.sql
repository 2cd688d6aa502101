-- Moves all checkpoints of a run to its superseded generation.
UPDATE durable_step SET run_id = ? WHERE shard = ? AND run_id = ?;
