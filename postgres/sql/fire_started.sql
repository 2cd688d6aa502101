-- Reads which of the given times have started a run (1), or wait (2).
SELECT f.at
FROM durable.fire AS f
WHERE f.shard = $1::smallint AND f.schedule = $2::text AND f.at = ANY ($3::timestamptz[]) AND f.outcome IN (1, 2);
