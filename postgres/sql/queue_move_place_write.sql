-- Writes the place of a run that was given another queue or another priority. The run is locked, and so is the queue in
-- which its place was.
INSERT INTO durable.place AS p (shard, run_id, queue, key, weight, priority, state, root, begun, turn, arrived_at, start_by)
VALUES ($1::smallint, $2::uuid, $3::text, $4::text, $5::integer, $6::smallint, $7::smallint, $8::boolean, $9::boolean, $10::bigint, $11::timestamptz, $12::timestamptz)
ON CONFLICT (shard, run_id) DO UPDATE
SET queue = excluded.queue, priority = excluded.priority, state = excluded.state, begun = excluded.begun, turn = excluded.turn, arrived_at = excluded.arrived_at
RETURNING p.run_id;
