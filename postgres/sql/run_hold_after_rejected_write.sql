-- Releases a run that is still running (2) at the writer's epoch, because the database does not accept
-- what it has to write. That counts as a crash by the rule of claim_runs.sql: the count starts again at 1 if
-- the run has made progress since its last crash; see claim_runs.sql. The run becomes pending (1),
-- and claimable after one second, four times as long after each further crash, and at most 300 seconds;
-- or at its deadline, if that is earlier and not over. At $6 crashes it is paused (4) instead, as by
-- claim_runs.sql; zero means no limit. A run that is to be paused (control 1, 2) is paused without a crash. If $8 is set, the
-- cause is not the run's: it is no crash, and the run is claimable after 30 seconds.
--
-- It returns what the run became. If it returns no row, run_state.sql reads the run.
WITH own AS MATERIALIZED (
    SELECT r.shard, r.id, r.control, r.crashes, r.progress,
           CASE WHEN r.deadline_at > $4::timestamptz THEN r.deadline_at END AS ahead
    FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
    FOR NO KEY UPDATE
), counted AS MATERIALIZED (
    SELECT own.shard, own.id, own.crashes, own.progress, own.ahead, own.control & 3 <> 0 AS halted,
           (SELECT (count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6))::integer FROM durable.step AS s
            WHERE s.shard = own.shard AND s.run_id = own.id) AS reached
    FROM own
), judged AS MATERIALIZED (
    SELECT shard, id, ahead, halted,
           CASE WHEN halted OR $8::boolean THEN progress ELSE reached END AS progress,
           CASE WHEN halted OR $8::boolean THEN crashes
                WHEN reached > progress THEN 1
                ELSE least(crashes + 1, 32767) END AS crashes
    FROM counted
), decided AS MATERIALIZED (
    SELECT shard, id, halted, progress, crashes,
           NOT halted AND NOT $8::boolean AND $6::integer > 0 AND crashes >= $6::integer AS hopeless,
           least(ahead, $4::timestamptz + CASE WHEN $8::boolean THEN 30 ELSE least(power(4, least(crashes - 1, 9)), 300) END * interval '1 second') AS back
    FROM judged
), held AS (
    UPDATE durable.run AS r
    SET status = CASE WHEN decided.hopeless OR decided.halted THEN 4 ELSE 1 END,
        wake_at = CASE WHEN decided.hopeless OR decided.halted THEN NULL ELSE decided.back END,
        control = CASE WHEN decided.hopeless THEN r.control | 1 ELSE r.control END,
        paused_at = CASE WHEN decided.hopeless THEN $4::timestamptz ELSE r.paused_at END,
        reason = CASE WHEN decided.halted THEN coalesce(r.reason, $5::text)
                      WHEN decided.hopeless THEN $5::text || '; the run was held, or its process died or lost its lease, ' || decided.crashes::text
                          || ' times in a row without a new checkpoint: resume it when the cause is mended'
                      ELSE $5::text END,
        owner = NULL, woken = false, progress = decided.progress, crashes = decided.crashes,
        trace = coalesce($7::text, r.trace)
    FROM decided
    WHERE r.shard = decided.shard AND r.id = decided.id
    RETURNING r.shard, r.id, r.status, r.epoch, r.control, CASE WHEN decided.halted THEN r.paused_by END AS paused_by,
              CASE WHEN decided.halted THEN r.reason END AS pause_reason, CASE WHEN NOT decided.halted THEN r.reason END AS hold_reason
), told AS (
    INSERT INTO durable.event (at, shard, type, run_id, actor, reason, new_value)
    SELECT $4::timestamptz, held.shard, 104, held.id, held.paused_by, held.pause_reason, held.hold_reason FROM held WHERE held.status = 4
)
SELECT held.status, held.epoch, held.control
FROM held;
