-- Applies the changes of a control request, each guarded by the state in which the run was found. It
-- records events for pauses (4) and cancels (7), with who has requested them and why, other ends (5 and above), and leases that an end takes from their owner. The
-- runs are locked, so all are in the state in which they were found; the returned count confirms that.
--
-- A run in the lane $17 waits for its start key (see store.UnreleasedLane). A resume does not make it due: its release does. No
-- admission counts such a run, so its place is deleted when it ends, and its lane tells that it has none.
--
-- A run that was admitted passes (6) when it is cancelled: a worker that executes as many runs of its queue as it may claims it, too.
--
-- A run that is cancelled loses its mark (8) that it must begin by a time. The place that holds the time is deleted if no
-- admission counts it: the queue has no row, or the run waits for its start key.
--
-- A run that ends loses its owner and gets the error. The column note has the numbers of store.AuditColumnsUpdate: 1 a
-- pause, 2 a resume, 3 a cancel. Workers are notified: an empty payload means that a run is claimable; a
-- worker's ID means that one of its runs was ended, or is to be paused or cancelled.
WITH changed AS (
    UPDATE durable.run AS r
    SET status = item.status, control = item.control, detached = item.detached,
        wake_at = CASE WHEN item.wake = 1 THEN NULL WHEN item.wake = 2 AND r.lane <> $17::bigint THEN $10::timestamptz ELSE r.wake_at END,
        lane = CASE WHEN item.status >= 5 AND r.lane = $17::bigint THEN r.lane & (-8)::bigint WHEN item.note = 3 AND r.lane & 3 = 2 THEN r.lane | 4 ELSE r.lane END,
        woken = r.woken AND item.status < 5,
        owner = CASE WHEN item.status >= 5 THEN NULL ELSE r.owner END,
        ended_at = CASE WHEN item.status >= 5 THEN $10::timestamptz ELSE r.ended_at END,
        error = CASE WHEN item.status >= 5 THEN $13::bytea ELSE r.error END,
        crashes = CASE WHEN item.note = 2 THEN 0 ELSE r.crashes END,
        reason = CASE WHEN item.note = 1 THEN $11::text WHEN item.note IN (2, 3) THEN NULL ELSE r.reason END,
        paused_by = CASE WHEN item.note = 1 THEN $12::text WHEN item.note IN (2, 3) THEN NULL ELSE r.paused_by END,
        paused_at = CASE WHEN item.note = 1 THEN coalesce(r.paused_at, $10::timestamptz) WHEN item.note IN (2, 3) THEN NULL ELSE r.paused_at END,
        cancel_reason = CASE WHEN item.note = 3 THEN $11::text ELSE r.cancel_reason END,
        cancelled_by = CASE WHEN item.note = 3 THEN $12::text ELSE r.cancelled_by END,
        cancelled_at = CASE WHEN item.note = 3 THEN $10::timestamptz ELSE r.cancelled_at END
    FROM unnest(
        $1::smallint[], $2::uuid[], $3::smallint[], $4::bigint[], $5::smallint[],
        $6::smallint[], $7::smallint[], $8::smallint[], $9::smallint[], $15::uuid[], $16::boolean[]
    ) AS item(
        shard, id, was_status, was_epoch, was_control,
        status, control, wake, note, was_owner, detached
    )
    WHERE r.shard = item.shard AND r.id = item.id
      AND r.status = item.was_status AND r.epoch = item.was_epoch AND r.control = item.was_control
    RETURNING r.shard, r.id, r.status, r.cancelled_by, r.cancel_reason, item.was_status, item.was_owner, r.control <> item.was_control AS asked,
              item.was_control & 8 > r.control & 8 AND (r.lane & 3 = 0 OR r.lane = $17::bigint)
                  OR item.status >= 5 AND r.lane = $17::bigint & (-8)::bigint AS unplaced
), removed AS (
    DELETE FROM durable.place AS p
    USING changed
    WHERE p.shard = changed.shard AND p.run_id = changed.id AND changed.unplaced
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason)
    SELECT $10::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, changed.status + 100, changed.id,
           CASE changed.status WHEN 4 THEN $12::text WHEN 7 THEN changed.cancelled_by END,
           CASE changed.status WHEN 4 THEN $11::text WHEN 7 THEN changed.cancel_reason END
    FROM changed
    WHERE changed.status >= 4 AND changed.status <> changed.was_status
    UNION ALL -- its owner lost the lease
    SELECT $10::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, 1, changed.id, NULL, NULL
    FROM changed
    WHERE changed.status >= 5 AND changed.was_status = 2
)
SELECT count(*),
       count(pg_notify($14::text, CASE changed.status WHEN 1 THEN '' ELSE coalesce(changed.was_owner::text, '') END))
           FILTER (WHERE (changed.status = 1 AND (changed.asked OR changed.was_status <> 1))
                      OR (changed.was_status = 2 AND (changed.asked OR changed.status <> 2)))
FROM changed;
