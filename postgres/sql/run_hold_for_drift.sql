-- Pauses a run that is still running (2) at the writer's epoch, because the code does not fit its history, and records
-- which version of the code diverged. The control bit 16 tells this from a pause, which keeps its reason. A run
-- that is to be cancelled is held too. The event has the actor and the reason of a requested pause, and otherwise the reason of the hold as
-- its new value.
--
-- It returns what the run became. If it returns no row, run_state.sql reads the run.
WITH held AS (
    UPDATE durable.run AS r
    SET status = 4, wake_at = NULL, control = r.control | 16, owner = NULL, woken = false,
        paused_at = CASE WHEN r.control & 3 <> 0 THEN r.paused_at ELSE $4::timestamptz END,
        reason = CASE WHEN r.control & 3 <> 0 THEN coalesce(r.reason, $5::text) ELSE $5::text END,
        trace = coalesce($6::text, r.trace)
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
    RETURNING r.shard, r.id, r.status, r.epoch, r.control, CASE WHEN r.control & 3 <> 0 THEN r.paused_by END AS paused_by,
              CASE WHEN r.control & 3 <> 0 THEN r.reason END AS pause_reason, CASE WHEN r.control & 3 = 0 THEN r.reason END AS hold_reason
), told AS (
    INSERT INTO durable.event (at, shard, type, run_id, actor, reason, new_value)
    SELECT $4::timestamptz, held.shard, 104, held.id, held.paused_by, held.pause_reason, held.hold_reason FROM held
), noted AS (
    INSERT INTO durable.divergence (shard, run_id, version, at, call, detail)
    SELECT held.shard, held.id, $7::text, $8::timestamptz, $9::text, $10::text FROM held
    ON CONFLICT (shard, run_id, version) DO UPDATE SET at = excluded.at, call = excluded.call, detail = excluded.detail, continued_by = NULL
)
SELECT held.status, held.epoch, held.control
FROM held;
