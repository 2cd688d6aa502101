-- Records that the pause of a run for its repair ends by itself at $3.
INSERT INTO durable.repair_pause AS p (shard, run_id, expires_at)
VALUES ($1::smallint, $2::uuid, $3::timestamptz)
ON CONFLICT (shard, run_id) DO UPDATE SET expires_at = greatest(p.expires_at, excluded.expires_at);
