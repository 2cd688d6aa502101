-- Removes permits and places in lines that the attempt of an execution gives back. The limit keys are locked.
DELETE FROM durable.permit AS p
USING unnest($1::smallint[], $2::uuid[], $3::text[], $4::bigint[], $5::integer[], $6::text[], $7::text[])
    AS item(shard, run_id, step, epoch, attempt, limit_name, key)
WHERE p.shard = item.shard AND p.run_id = item.run_id AND p.step = item.step
  AND p.epoch = item.epoch AND p.attempt = item.attempt AND (p.limit_name, p.key) IS NOT DISTINCT FROM (item.limit_name, item.key);
