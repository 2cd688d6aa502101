-- Which of the leases are not held any more. Asked only when lease_extend.sql extended fewer
-- rows than it was given; one that is merely locked is not lost.
SELECT held.id
FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS held(shard, id, epoch)
WHERE NOT EXISTS (
    SELECT FROM durable.run AS r
    WHERE r.shard = held.shard AND r.id = held.id AND r.epoch = held.epoch AND r.status = 2 AND r.owner = $4::uuid
    OFFSET 0
);
