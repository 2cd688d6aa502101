-- Takes a live run away from its owner for a repair: it is paused (4) with the next epoch, $6, if it still has the
-- status $3, the epoch $4 and the control bits $5. A run that was executed gets the events of a lost lease and of a
-- pause. Unless the run is paused itself (control 1) or held for drift (16), it is paused for the repair (1 and 32). It returns the run.
WITH changed AS (
    UPDATE durable.run AS r
    SET status = 4, epoch = $6::bigint, control = CASE WHEN r.control & 17 = 0 THEN r.control | 33 ELSE r.control END, owner = NULL, wake_at = NULL, woken = false,
        reason = CASE WHEN r.control & 17 = 0 THEN $8::text ELSE r.reason END,
        paused_by = CASE WHEN r.control & 17 = 0 THEN $9::text ELSE r.paused_by END,
        paused_at = coalesce(r.paused_at, $7::timestamptz)
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status = $3::smallint AND r.epoch = $4::bigint
      AND r.control = $5::smallint AND r.status < 5
    RETURNING r.shard, r.id
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id)
    SELECT $7::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, item.type, changed.id
    FROM changed
    CROSS JOIN unnest('{1,104}'::smallint[]) AS item(type)
    WHERE $3::smallint = 2
)
SELECT changed.id FROM changed;
