-- Tags runs that start.sql has created just before. Their IDs are new, so that the row of
-- one is there only if this start made it, now or in a try whose answer was lost.
INSERT INTO durable.tag (shard, run_id, key, value)
SELECT item.shard, item.run_id, item.key, item.value
FROM unnest($1::smallint[], $2::uuid[], $3::text[], $4::text[]) AS item(shard, run_id, key, value)
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.run_id
    OFFSET 0
) AS made
ON CONFLICT (shard, run_id, key) DO NOTHING;
