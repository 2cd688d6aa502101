-- Reads the fires of the latest times of a schedule, or of the latest before $4, the newest first.
SELECT f.at, f.fired_at, f.kind, f.outcome, f.run_id
FROM durable.fire AS f
WHERE f.shard = $1::smallint AND f.schedule = $2::text AND ($4::timestamptz IS NULL OR f.at < $4::timestamptz)
ORDER BY f.at DESC
LIMIT $3::integer;
