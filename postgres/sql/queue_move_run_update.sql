-- Gives a locked run that has not begun another queue, another priority, or both, and records an event for
-- each ($12): 2 another queue, 3 another priority. It returns whether the run had the status $8 and the control bits $9.
WITH changed AS (
    UPDATE durable.run AS r
    SET queue = $3::text, priority = $4::smallint, lane = $5::bigint, wake_at = $6::timestamptz
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status = $8::smallint AND r.control = $9::smallint
    RETURNING r.shard, r.id
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value, new_value)
    SELECT $7::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, item.type, changed.id, $10::text, $11::text, item.old_value, item.new_value
    FROM changed
    CROSS JOIN unnest($12::smallint[], $13::text[], $14::text[]) AS item(type, old_value, new_value)
)
SELECT changed.id FROM changed;
