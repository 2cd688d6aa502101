-- Removes permits of locked limit keys.
DELETE FROM durable.permit AS p
USING unnest($1::smallint[], $2::uuid[], $3::text[], $4::text[], $5::text[]) AS item(shard, run_id, step, limit_name, key)
WHERE p.shard = item.shard AND p.run_id = item.run_id AND p.step = item.step AND (p.limit_name, p.key) IS NOT DISTINCT FROM (item.limit_name, item.key);
