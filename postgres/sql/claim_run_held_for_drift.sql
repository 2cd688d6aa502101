-- Claims a run that is held for drift (control 16) and not paused (1, 2), as claim_runs.sql claims a due one: the worker $4 owns it
-- until $5, with the nonce $3. A run that needs a place in its queue (the admission state in its lane is not 0) becomes pending (1) instead,
-- and due at $6. It gets the version $8 and, apart from its admission state, the lane $7. The run was read before, with the queue $9, the
-- priority $10 and the version $11. The versions $12 have diverged on it, and do not claim it again. Another version is
-- recorded as an event (7). It returns the run, or no row.
WITH claimed AS (
    UPDATE durable.run AS r
    SET status = CASE WHEN r.lane & 7 = 0 THEN 2 ELSE 1 END,
        control = r.control & ~16,
        epoch = CASE WHEN r.lane & 7 = 0 THEN ((r.epoch >> 32) + 1) << 32 | $3::bigint ELSE r.epoch END,
        owner = CASE WHEN r.lane & 7 = 0 THEN $4::uuid END,
        wake_at = CASE WHEN r.lane & 7 = 0 THEN $5::timestamptz ELSE $6::timestamptz END,
        lane = r.lane & 7 | $7::bigint, version = $8::text, diverged = $12::text,
        woken = false, reason = NULL, paused_at = NULL, paused_by = NULL
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status = 4 AND r.control & 19 = 16
      AND r.queue = $9::text AND r.priority = $10::smallint AND r.version = $11::text
    RETURNING r.shard, r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
              r.crashes, r.input, r.output, r.error, r.reason, r.trace,
              r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
              r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
), continued AS (
    UPDATE durable.divergence AS d
    SET continued_by = $8::text
    FROM claimed
    WHERE d.shard = claimed.shard AND d.run_id = claimed.id
), told AS (
    INSERT INTO durable.event (at, shard, type, run_id, old_value, new_value)
    SELECT $6::timestamptz, claimed.shard, 7, claimed.id, $11::text, $8::text FROM claimed WHERE $11::text <> $8::text
)
SELECT claimed.id, claimed.parent_id, claimed.name, claimed.workflow, claimed.version, claimed.queue, claimed.priority, claimed.status, claimed.epoch, claimed.owner,
       claimed.crashes, claimed.input, claimed.output, claimed.error, claimed.reason, claimed.trace,
       claimed.created_at, claimed.started_at, claimed.ended_at, claimed.wake_at, claimed.deadline_at,
       claimed.detached, claimed.control, claimed.paused_by, claimed.cancelled_by, claimed.cancel_reason, claimed.paused_at, claimed.cancelled_at
FROM claimed;
