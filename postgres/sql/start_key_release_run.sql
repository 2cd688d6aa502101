-- Makes a run claimable that waited because starts with its key fold. It changes nothing if the run was
-- ever executed (epoch 0: never), has ended, is to be cancelled (control 4), or has another queue or
-- priority than the lane $3 is for. A paused run (4) stays paused, and begins when it is resumed. A timeout that was set or
-- removed while the run waited (not NULL) is kept.
--
-- The place of the run, if it has one, gets the time by which the run must begin. If there is no such time, and the queue has no
-- row any more, the place only keeps the group key (0).
WITH released AS (
    UPDATE durable.run AS r
    SET lane = $3::bigint, deadline_at = CASE WHEN r.timeout IS NULL THEN $5::timestamptz ELSE r.deadline_at END,
        timeout = coalesce(r.timeout, $10::bigint), input = coalesce($6::bytea, r.input),
        wake_at = CASE WHEN r.status = 1 THEN $4::timestamptz ELSE r.wake_at END
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status IN (1, 4) AND r.epoch = 0 AND r.control & 4 = 0 AND r.queue = $7::text AND r.priority = $8::smallint
    RETURNING r.status
), placed AS (
    UPDATE durable.place AS p
    SET start_by = $9::timestamptz, state = CASE WHEN $3::bigint & 3 > 0 OR $9::timestamptz IS NOT NULL THEN 1 ELSE 0 END
    WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND EXISTS (SELECT FROM released)
)
SELECT released.status FROM released;
