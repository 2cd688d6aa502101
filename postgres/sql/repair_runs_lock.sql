-- Locks the runs of a repair, and their ancestors if $3 says so, in the order of (shard, id), whether they have ended or not, and
-- returns how many.
WITH RECURSIVE above AS (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    UNION
    SELECT above.shard, own.parent_id
    FROM above
    CROSS JOIN LATERAL (
        SELECT r.parent_id FROM durable.run AS r
        WHERE r.shard = above.shard AND r.id = above.id
        OFFSET 0
    ) AS own
    WHERE own.parent_id IS NOT NULL AND $3::boolean
), place AS MATERIALIZED (
    SELECT above.shard, above.id FROM above ORDER BY shard, id
)
SELECT count(*)
FROM place
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard = place.shard AND r.id = place.id
    FOR NO KEY UPDATE
) AS run;
