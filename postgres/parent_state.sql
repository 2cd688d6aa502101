-- Reads what the parents of children are that were not created.
SELECT item.ordinal, r.status, r.epoch, r.control
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
CROSS JOIN LATERAL (
    SELECT r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS r;
