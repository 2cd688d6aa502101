-- Deletes the fires of a schedule.
DELETE FROM durable.fire AS f
WHERE f.shard = $1::smallint AND f.schedule = $2::text;
