-- Writes permits of locked limit keys. The row of a step is replaced, also if it stood in another line.
INSERT INTO durable.permit AS p (
    shard, run_id, step, limit_name, key, status, epoch, attempt, units, priority, missed, arrived_at, granted_at, until_at
)
SELECT item.shard, item.run_id, item.step, item.limit_name, item.key, item.status, item.epoch, item.attempt, item.units,
       item.priority, item.missed, item.arrived_at, item.granted_at, item.until_at
FROM unnest(
    $1::smallint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::integer[], $9::integer[],
    $10::smallint[], $11::boolean[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[]
) AS item(shard, run_id, step, limit_name, key, status, epoch, attempt, units, priority, missed, arrived_at, granted_at, until_at)
ORDER BY item.shard, item.run_id, item.step
ON CONFLICT (shard, run_id, step) DO UPDATE
SET limit_name = excluded.limit_name, key = excluded.key, status = excluded.status, epoch = excluded.epoch, attempt = excluded.attempt,
    units = excluded.units, priority = excluded.priority, missed = excluded.missed,
    arrived_at = excluded.arrived_at, granted_at = excluded.granted_at, until_at = excluded.until_at;
