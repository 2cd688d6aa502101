-- Sets tags of one run; an empty value removes a tag. It returns whether the run exists and, unless $5 is
-- zero, is running (2) at the epoch $5.
WITH target AS MATERIALIZED (
    SELECT r.id FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid
      AND ($5::bigint = 0 OR (r.epoch = $5::bigint AND r.status = 2))
), item AS MATERIALIZED (
    SELECT * FROM unnest($3::text[], $4::text[]) AS item(key, value)
), kept AS (
    INSERT INTO durable.tag AS t (shard, run_id, key, value)
    SELECT $1::smallint, $2::uuid, item.key, item.value
    FROM target CROSS JOIN item
    WHERE item.value <> ''
    ON CONFLICT (shard, run_id, key) DO UPDATE SET value = excluded.value
), removed AS (
    DELETE FROM durable.tag AS t
    USING target CROSS JOIN item
    WHERE t.shard = $1::smallint AND t.run_id = $2::uuid AND t.key = item.key AND item.value = ''
)
SELECT EXISTS (SELECT FROM target);
