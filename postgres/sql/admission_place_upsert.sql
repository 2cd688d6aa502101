-- Writes the places of runs that an admission has locked.
INSERT INTO durable.place AS p (shard, run_id, queue, key, weight, priority, state, root, begun, turn, arrived_at, start_by)
SELECT item.shard, item.run_id, $3::text, item.key, item.weight, item.priority, item.state, item.root, item.begun, item.turn, item.arrived_at, item.start_by
FROM unnest(
    $1::smallint[], $2::uuid[], $4::text[], $5::integer[], $6::smallint[], $7::smallint[], $8::boolean[], $9::boolean[], $10::bigint[],
    $11::timestamptz[], $12::timestamptz[]
) AS item(shard, run_id, key, weight, priority, state, root, begun, turn, arrived_at, start_by)
ORDER BY item.shard, item.run_id
ON CONFLICT (shard, run_id) DO UPDATE
SET state = excluded.state, root = excluded.root, begun = excluded.begun, turn = excluded.turn, arrived_at = excluded.arrived_at
RETURNING p.run_id;
