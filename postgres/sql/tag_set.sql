-- Sets tags of one run; an empty value removes a tag. It returns whether the run exists and, unless $5 is
-- zero, is running (2) at the epoch $5. If $6 is not NULL and any tag changes, an event (10) records who has requested it.
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
    WHERE t.value <> excluded.value
    RETURNING t.key
), removed AS (
    DELETE FROM durable.tag AS t
    USING target CROSS JOIN item
    WHERE t.shard = $1::smallint AND t.run_id = $2::uuid AND t.key = item.key AND item.value = ''
    RETURNING t.key
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, new_value)
    SELECT $6::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           $1::smallint, 10, target.id, $7::text, $8::text, $9::text
    FROM target
    WHERE $6::timestamptz IS NOT NULL AND (EXISTS (SELECT FROM kept) OR EXISTS (SELECT FROM removed))
)
SELECT EXISTS (SELECT FROM target);
