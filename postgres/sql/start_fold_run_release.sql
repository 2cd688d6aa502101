-- Makes a run claimable that waited because starts with its key fold. It changes nothing if the run was
-- ever executed (epoch 0: never), has ended, is to be cancelled (control 4), or has another queue or
-- priority than the lane $3 is for. A paused run (4) stays paused, and begins when it is resumed.
UPDATE durable.run AS r
SET lane = $3::bigint, deadline_at = $5::timestamptz, input = coalesce($6::bytea, r.input),
    wake_at = CASE WHEN r.status = 1 THEN $4::timestamptz ELSE r.wake_at END
WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status IN (1, 4) AND r.epoch = 0 AND r.control & 4 = 0 AND r.queue = $7::text AND r.priority = $8::smallint
RETURNING r.status;
