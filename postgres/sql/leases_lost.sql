-- Returns the leases that are no longer held. It is executed only if lease_extend.sql extended fewer
-- leases than it was given. A lease whose row is only locked is not lost.
SELECT held.id
FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS held(shard, id, epoch)
WHERE NOT EXISTS (
    SELECT FROM durable.run AS r
    WHERE r.shard = held.shard AND r.id = held.id AND r.epoch = held.epoch AND r.status = 2 AND r.owner = $4::uuid
    OFFSET 0
);
