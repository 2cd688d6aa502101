-- Creates a schedule. It returns no row if the schedule exists: then the caller reads it.
INSERT INTO durable.schedule (shard, name, state, next_at, waiting_at, last_shard, last_run, paused, cancels, fires)
VALUES ($1::smallint, $2::text, $3::bytea, $4::timestamptz, $5::timestamptz, $6::smallint, $7::uuid, $8::boolean, $9::boolean, $10::integer)
ON CONFLICT (shard, name) DO NOTHING
RETURNING name;
