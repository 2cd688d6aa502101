-- Returns the states of the runs of a repair, which are locked, and whether the request $3 has superseded the generation
-- $4 of each.
SELECT r.id, r.status, r.epoch, r.control,
       EXISTS (
           SELECT FROM durable.generation AS g
           WHERE g.shard = r.shard AND g.run_id = r.id AND g.number = $4::integer AND g.request = $3::uuid
           OFFSET 0
       )
FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
CROSS JOIN LATERAL (
    SELECT r.shard, r.id, r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS r;
