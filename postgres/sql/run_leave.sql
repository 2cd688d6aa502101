-- Ends ownerships: each run that is still running (2) at the writer's epoch finishes,
-- parks, goes back or is set aside, and what happened to it is recorded. What was
-- asked of it meanwhile goes first:
--
--   to be cancelled (control 4)  it ends only as cancelled (7): no row is taken for another
--                                end. Not ended, it is pending (1) now: it has to undo things
--   paused (control 1, 2)        not ended, it is paused (4), with the pause's reason
--   woken                        it parks (3) so that it is claimable at once
--
-- One that is set aside (4) without having been paused counts as paused itself from now
-- on, so that it can be resumed.
--
-- It answers how many rows were taken; run_state.sql reads those that were not. Others
-- are told if a run became claimable. Where all finish, run_finish.sql does with less.
WITH ended AS (
    UPDATE durable.run AS r
    SET status = CASE WHEN item.status >= 5 THEN item.status
                      WHEN r.control & 4 <> 0 THEN 1
                      WHEN r.control & 3 <> 0 THEN 4
                      ELSE item.status END,
        wake_at = CASE WHEN item.status >= 5 THEN item.wake_at
                       WHEN r.control & 4 <> 0 THEN item.at
                       WHEN r.control & 3 <> 0 THEN NULL
                       WHEN item.status = 3 AND r.woken THEN item.at
                       ELSE item.wake_at END,
        reason = CASE WHEN item.status < 5 AND r.control & 4 = 0 AND r.control & 3 <> 0
                      THEN coalesce(r.reason, item.reason)
                      WHEN item.status = 1 OR (item.status < 5 AND r.control & 4 <> 0)
                      THEN coalesce(item.reason, r.reason) ELSE item.reason END,
        control = CASE WHEN item.status = 4 AND r.control = 0 THEN 1 ELSE r.control END,
        paused_at = CASE WHEN item.status = 4 AND r.control = 0 THEN item.at ELSE r.paused_at END,
        owner = NULL, woken = false, ended_at = item.ended_at,
        output = item.output, error = item.error, trace = coalesce(item.trace, r.trace)
    FROM unnest(
        $1::smallint[], $2::uuid[], $3::bigint[], $4::smallint[],
        $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[]
    ) AS item(
        shard, id, epoch, status,
        output, error, reason, trace, ended_at, wake_at, at
    )
    WHERE r.shard = item.shard AND r.id = item.id AND r.epoch = item.epoch AND r.status = 2
      AND (r.control & 4 = 0 OR item.status < 5 OR item.status = 7)
    RETURNING r.shard, r.id, r.status, item.at, r.status = 1 OR (r.status = 3 AND r.wake_at <= item.at) AS claimable
), told AS (
    INSERT INTO durable.event (at, shard, type, run_id)
    SELECT ended.at, ended.shard, ended.status + 100, ended.id
    FROM ended
    WHERE ended.status >= 4
)
SELECT count(*), CASE WHEN bool_or(ended.claimable) THEN pg_notify($12::text, '') END
FROM ended;
