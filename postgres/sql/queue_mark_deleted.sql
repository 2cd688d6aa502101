-- Marks a queue as deleted, with all that was set and declared. The admission that finds nothing left in it
-- deletes the row. If $3 is not NULL, an event (14), which concerns no run, records who has requested it.
WITH changed AS (
    UPDATE durable.queue AS q
    SET deleted = true, applied = NULL, paused_at = NULL, paused_by = NULL, pause_reason = NULL,
        chosen = NULL, chosen_by = NULL, chosen_reason = NULL, chosen_at = NULL,
        declared = NULL, declared_version = NULL, declared_at = NULL, older_versions = '{}',
        last_change = $2::text
    WHERE q.name = $1::text AND NOT q.deleted
    RETURNING q.name
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value)
    SELECT $3::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           0, 14, '00000000-0000-0000-0000-000000000000'::uuid, $4::text, $5::text, changed.name
    FROM changed
    WHERE $3::timestamptz IS NOT NULL
)
SELECT changed.name FROM changed;
