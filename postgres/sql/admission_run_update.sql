-- Writes what an admission has decided for runs that it has locked.
UPDATE durable.run AS r
SET lane = (r.lane & (-8)::bigint) | item.admission, status = item.status, wake_at = item.wake_at
FROM unnest($1::smallint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::timestamptz[]) AS item(shard, id, admission, status, wake_at)
WHERE r.shard = item.shard AND r.id = item.id;
