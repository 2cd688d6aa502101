-- Reads the status and the epoch of runs whose guarded update took no row.
SELECT item.ordinal, r.status, r.epoch
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
CROSS JOIN LATERAL (
    SELECT r.status, r.epoch FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS r;
