-- Deletes the places of runs that have ended, which an admission has locked.
DELETE FROM durable.place AS p
USING unnest($1::smallint[], $2::uuid[]) AS item(shard, run_id)
WHERE p.shard = item.shard AND p.run_id = item.run_id;
