-- Reads the bitmaps of past fires of the given hours.
SELECT f.hour, f.bits
FROM durable.fired AS f
WHERE f.shard = $1::smallint AND f.schedule = $2::text AND f.hour = ANY ($3::timestamptz[]);
