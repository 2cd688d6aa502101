-- Removes the bounds of a limit. If $2 is not NULL, an event (15), which concerns no run, records who has requested it.
WITH changed AS (
    DELETE FROM durable.step_limit AS l WHERE l.name = $1::text RETURNING l.name
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value)
    SELECT $2::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           0, 15, '00000000-0000-0000-0000-000000000000'::uuid, $3::text, $4::text, changed.name
    FROM changed
    WHERE $2::timestamptz IS NOT NULL
)
SELECT changed.name FROM changed;
