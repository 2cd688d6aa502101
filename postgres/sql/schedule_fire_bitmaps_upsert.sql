-- Writes bitmaps of past fires. The transaction has locked the schedule and read the hours, so nothing is lost.
INSERT INTO durable.fired AS f (shard, schedule, hour, bits)
SELECT $1::smallint, $2::text, item.hour, item.bits
FROM unnest($3::timestamptz[], $4::bytea[]) AS item(hour, bits)
ON CONFLICT (shard, schedule, hour) DO UPDATE SET bits = excluded.bits
RETURNING f.hour;
