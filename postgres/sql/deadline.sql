-- Sets when a live run expires ($3; NULL: never), unless it is to be cancelled (control 4), or
-- its own deadline was over at $4, so that it may have begun to expire; a paused run (4) has not
-- if its deadline came after the pause. No row: run_state.sql reads why.
--
-- A waiting run (3), and a pending one (1) that is held, becomes claimable at the deadline at the
-- latest; a running one (2) is marked, so that it does not park with the old one, and its owner is told.
WITH changed AS (
    UPDATE durable.run AS r
    SET deadline_at = $3::timestamptz,
        wake_at = CASE WHEN r.status = 3 OR (r.status = 1 AND r.crashes > 0) THEN least(r.wake_at, $3::timestamptz) ELSE r.wake_at END,
        woken = r.woken OR r.status = 2
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status < 5 AND r.control & 4 = 0
      AND (r.deadline_at IS NULL OR r.deadline_at > $4::timestamptz OR (r.status = 4 AND r.deadline_at > r.paused_at))
    RETURNING r.status, r.owner
)
SELECT changed.status,
       CASE WHEN changed.status < 4 THEN pg_notify($5::text, coalesce(changed.owner::text, '')) END
FROM changed;
