-- Returns those of the runs ($1, $2) that have recorded how they end, in the checkpoint $3.
SELECT item.id
FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
CROSS JOIN LATERAL (
    SELECT FROM durable.step AS s WHERE s.shard = item.shard AND s.run_id = item.id AND s.name = $3::text OFFSET 0
) AS s;
