-- Deletes what is recorded of the pause of a run for its repair, unless the pause was extended beyond $3.
DELETE FROM durable.repair_pause AS p
WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND p.expires_at <= $3::timestamptz;
