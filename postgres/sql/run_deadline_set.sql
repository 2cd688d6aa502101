-- Sets the deadline of a live run to $3, and its timeout to $6 (NULL: none). It changes nothing if the run is to be cancelled
-- (control 4), or if its present deadline was over at $4, because the run may have begun to expire. A
-- paused run (4) has not begun to expire if its deadline is after the pause. If no row is returned,
-- run_state.sql reads why.
--
-- A waiting run (3), or a pending one (1) that is held, becomes claimable at the deadline at the latest. An
-- admission looks then at a run in the line of its queue.
-- A running run (2) is marked, so that it does not park with the old deadline, and its owner is notified.
WITH changed AS (
    UPDATE durable.run AS r
    SET deadline_at = $3::timestamptz, timeout = $6::bigint,
        wake_at = CASE WHEN r.status = 3 OR (r.status = 1 AND (r.crashes > 0 OR r.lane & 3 = 3)) THEN least(r.wake_at, $3::timestamptz) ELSE r.wake_at END,
        woken = r.woken OR r.status = 2
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status < 5 AND r.control & 4 = 0
      AND (r.deadline_at IS NULL OR r.deadline_at > $4::timestamptz OR (r.status = 4 AND r.deadline_at > r.paused_at))
    RETURNING r.status, r.owner
)
SELECT changed.status,
       CASE WHEN changed.status < 4 THEN pg_notify($5::text, coalesce(changed.owner::text, '')) END
FROM changed;
