-- Makes a run its next generation, if it still has the status $3, the epoch $4 and the control bits $5. It begins with
-- the epoch $6, the status $7 and the control bits $8. The event has the numbers of both generations. It returns the run.
WITH changed AS (
    UPDATE durable.run AS r
    SET epoch = $6::bigint, status = $7::smallint, control = $8::smallint, wake_at = $9::timestamptz, deadline_at = $10::timestamptz,
        progress = $11::integer, crashes = 0, owner = NULL, woken = false, output = NULL, error = NULL, ended_at = NULL,
        reason = CASE WHEN $7::smallint = 4 THEN r.reason END,
        paused_by = CASE WHEN $7::smallint = 4 THEN r.paused_by END,
        paused_at = CASE WHEN $7::smallint = 4 THEN r.paused_at END,
        cancel_reason = NULL, cancelled_by = NULL, cancelled_at = NULL
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status = $3::smallint AND r.epoch = $4::bigint AND r.control = $5::smallint
    RETURNING r.shard, r.id
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value, new_value)
    SELECT $12::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, 4, changed.id, $13::text, $14::text, $15::text, $16::text
    FROM changed
)
SELECT changed.id FROM changed;
