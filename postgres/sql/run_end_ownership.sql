-- Ends the ownership of runs: each run that is still running (2) at the writer's epoch finishes, parks,
-- becomes pending or is paused. Ends and pauses are recorded as events, a requested pause or cancel with its actor and reason. Requests to the run take
-- precedence:
--
--  to be cancelled (control 4)  it ends only as cancelled (7); another end changes no row. If
--                               it does not end, it becomes pending (1) to be compensated, unless it
--                               parks between the attempts of a compensation (cancel_begun)
--  to be paused (control 1, 2)  if it does not end, it is paused (4), with the pause's reason
--  woken                        if it parks (3), it is claimable at once
--
-- A run that is paused (4) without such a request counts as paused itself from now on, so that it can be
-- resumed.
--
-- If a run with crashes has made progress since the last of them (see claim_runs.sql), its count of crashes begins again, so that
-- it is no suspect any more.
--
-- It returns how many rows were changed; run_state.sql reads the others. Workers are notified if a run
-- became claimable. If all runs finish and none has failed, run_finish.sql is used, which does less work.
WITH ended AS (
    UPDATE durable.run AS r
    SET status = CASE WHEN item.status >= 5 THEN item.status
                      WHEN r.control & 4 <> 0 AND item.cancel_begun IS NOT TRUE THEN 1
                      WHEN r.control & 3 <> 0 THEN 4
                      ELSE item.status END,
        wake_at = CASE WHEN item.status >= 5 THEN item.wake_at
                       WHEN r.control & 4 <> 0 AND item.cancel_begun IS NOT TRUE THEN item.at
                       WHEN r.control & 3 <> 0 THEN NULL
                       WHEN item.status = 3 AND r.woken THEN item.at
                       ELSE item.wake_at END,
        reason = CASE WHEN item.status < 5 AND r.control & 4 = 0 AND r.control & 3 <> 0
                      THEN coalesce(r.reason, item.reason)
                      WHEN item.status = 1 OR (item.status < 5 AND r.control & 4 <> 0 AND item.cancel_begun IS NOT TRUE)
                      THEN coalesce(item.reason, r.reason) ELSE item.reason END,
        control = CASE WHEN item.status = 4 AND r.control & 7 = 0 THEN r.control | 1 ELSE r.control END,
        paused_at = CASE WHEN item.status = 4 AND r.control & 7 = 0 THEN item.at ELSE r.paused_at END,
        crashes = CASE WHEN r.crashes > 0 AND (
                           SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s
                           WHERE s.shard = r.shard AND s.run_id = r.id
                       ) > r.progress THEN 0 ELSE r.crashes END,
        owner = NULL, woken = false, ended_at = item.ended_at,
        output = item.output, error = item.error, failed_step = item.failed_step, failed_type = item.failed_type, trace = coalesce(item.trace, r.trace)
    FROM unnest(
        $1::smallint[], $2::uuid[], $3::bigint[], $4::smallint[],
        $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[],
        $12::text[], $13::text[], $14::boolean[]
    ) AS item(
        shard, id, epoch, status,
        output, error, reason, trace, ended_at, wake_at, at,
        failed_step, failed_type, cancel_begun
    )
    WHERE r.shard = item.shard AND r.id = item.id AND r.epoch = item.epoch AND r.status = 2
      AND (r.control & 4 = 0 OR item.status < 5 OR item.status = 7)
    RETURNING r.shard, r.id, r.status, item.at, r.status = 1 OR (r.status = 3 AND r.wake_at <= item.at) AS claimable,
              CASE r.status WHEN 4 THEN r.paused_by WHEN 7 THEN r.cancelled_by END AS actor,
              CASE WHEN r.status = 4 AND (item.status <> 4 OR r.paused_by IS NOT NULL) THEN r.reason WHEN r.status = 7 THEN r.cancel_reason END AS why
), told AS (
    INSERT INTO durable.event (at, shard, type, run_id, actor, reason)
    SELECT ended.at, ended.shard, ended.status + 100, ended.id, ended.actor, ended.why
    FROM ended
    WHERE ended.status >= 4
)
SELECT count(*), CASE WHEN bool_or(ended.claimable) THEN pg_notify($15::text, '') END
FROM ended;
