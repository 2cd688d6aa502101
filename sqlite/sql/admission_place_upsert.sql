-- Writes the place of a run.
INSERT INTO durable_place (shard, run_id, queue, key, weight, priority, state, root, begun, turn, arrived_at, start_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (shard, run_id) DO UPDATE
SET state = excluded.state, root = excluded.root, begun = excluded.begun, turn = excluded.turn, arrived_at = excluded.arrived_at;
