-- Moves all checkpoints of a run to its superseded generation, $3.
UPDATE durable.step AS s
SET run_id = $3::uuid
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid;
