-- Deletes the bitmaps of past fires of a schedule.
DELETE FROM durable.fired AS f
WHERE f.shard = $1::smallint AND f.schedule = $2::text;
