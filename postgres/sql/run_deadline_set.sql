-- Sets the deadline of a live run to $3, and its timeout to $6 (0: none). So the timeout of the run is
-- not NULL any more: a run whose starts fold gets no other deadline when it is released. It changes nothing if the run is to be cancelled
-- (control 4), or if its present deadline was over at $4, because the run may have begun to expire. A
-- paused run (4) has not begun to expire if its deadline is after the pause. If no row is returned,
-- run_state.sql reads why. If $7 is not NULL and the deadline changes, an event (11) records who has requested it; $10 is the new
-- deadline as text.
--
-- A waiting run (3), or a pending one (1) that is held, becomes claimable when the deadline comes, or earlier if it was to
-- wake earlier. If the run is in the line of its queue, an admission checks it at that time.
-- A running run (2) is marked, so that it does not park with the old deadline, and its owner is notified.
--
-- The run is locked first, so that the deadline before is the one that this change replaces.
WITH was AS MATERIALIZED (
    SELECT b.shard, b.id, b.deadline_at FROM durable.run AS b
    WHERE b.shard = $1::smallint AND b.id = $2::uuid
    FOR NO KEY UPDATE
), changed AS (
    UPDATE durable.run AS r
    SET deadline_at = $3::timestamptz, timeout = $6::bigint,
        wake_at = CASE WHEN r.status = 3 OR (r.status = 1 AND (r.crashes > 0 OR r.lane & 3 = 3)) THEN least(r.wake_at, $3::timestamptz) ELSE r.wake_at END,
        woken = r.woken OR r.status = 2
    FROM was
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND was.shard = r.shard AND was.id = r.id AND r.status < 5 AND r.control & 4 = 0
      AND (r.deadline_at IS NULL OR r.deadline_at > $4::timestamptz OR (r.status = 4 AND r.deadline_at > r.paused_at))
    RETURNING r.shard, r.id, r.status, r.owner, was.deadline_at
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value, new_value)
    SELECT $7::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, 11, changed.id, $8::text, $9::text,
           to_char(changed.deadline_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), $10::text
    FROM changed
    WHERE $7::timestamptz IS NOT NULL AND changed.deadline_at IS DISTINCT FROM $3::timestamptz
)
SELECT changed.status,
       CASE WHEN changed.status < 4 THEN pg_notify($5::text, coalesce(changed.owner::text, '')) END
FROM changed;
