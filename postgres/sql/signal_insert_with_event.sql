-- Stores one signal as signal_insert.sql does, and, if it is new, an event (9) with who has sent it and why.
WITH sent AS (
    INSERT INTO durable.signal (shard, run_id, id, name, key, payload, created_at, arrived_at)
    SELECT item.shard, item.run_id, item.id, item.name, item.key, item.payload, item.created_at,
           coalesce(item.arrived_at, clock_timestamp())
    FROM unnest(
        $1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::timestamptz[], $8::timestamptz[]
    ) AS item(shard, run_id, id, name, key, payload, created_at, arrived_at)
    CROSS JOIN LATERAL (
        SELECT FROM durable.run AS r
        WHERE r.shard = item.shard AND r.id = item.run_id AND r.status < 5
        OFFSET 0
    ) AS live
    ON CONFLICT DO NOTHING
    RETURNING shard, run_id, name
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, new_value)
    SELECT $9::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           sent.shard, 9, sent.run_id, $10::text, $11::text, sent.name
    FROM sent
)
SELECT true FROM sent;
