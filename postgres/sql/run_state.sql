-- Returns the states of runs whose guarded update changed no row. It returns their payloads too, because
-- only exactly the same end is a repeated write.
SELECT item.ordinal, r.status, r.epoch, r.control, r.output, r.error
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
CROSS JOIN LATERAL (
    SELECT r.status, r.epoch, r.control, r.output, r.error FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS r;
