-- Returns the superseded generations with the archive IDs $2, of the shards $1.
SELECT g.archive_id, g.run_id, g.number
FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, archive_id)
CROSS JOIN LATERAL (
    SELECT own.archive_id, own.run_id, own.number FROM durable.generation AS own
    WHERE own.archive_id = item.archive_id AND own.shard = item.shard
    OFFSET 0
) AS g;
