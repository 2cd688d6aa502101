-- Moves children of a run to its superseded generation, $3: those in $4, or all of them if that is NULL.
UPDATE durable.run AS r
SET parent_id = $3::uuid
WHERE r.shard = $1::smallint AND r.parent_id = $2::uuid AND ($4::uuid[] IS NULL OR r.id = ANY ($4::uuid[]));
