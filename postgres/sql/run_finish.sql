-- Finishes runs, if none of them has failed: each run that is still running (2) at the writer's epoch ends as completed (5) or
-- cancelled (7), and gets an event, that of a cancelled run with who has requested the cancel and why. run_end_ownership.sql ends those that have failed. A run that is to be cancelled (control 4) ends
-- only as cancelled. The count is the number of finished runs; run_state.sql reads the others.
--
-- If some runs of the batch are only released, run_end_ownership.sql writes all of them, in one order. For how
-- the arrays are read see step_insert.sql.
WITH ended AS (
    UPDATE durable.run AS r
    SET status = item.status, wake_at = NULL, reason = item.reason,
        owner = NULL, woken = false, ended_at = item.ended_at,
        output = item.output, error = item.error, trace = coalesce(item.trace, r.trace)
    FROM (
        SELECT item.shard, item.output, ($2::uuid[])[i] AS id, ($3::bigint[])[i] AS epoch, ($4::smallint[])[i] AS status,
               ($6::bytea[])[i] AS error, ($7::text[])[i] AS reason, ($8::text[])[i] AS trace, ($9::timestamptz[])[i] AS ended_at
        FROM unnest($1::smallint[], $5::bytea[]) WITH ORDINALITY AS item(shard, output, i)
    ) AS item
    WHERE r.shard = item.shard AND r.id = item.id AND r.epoch = item.epoch AND r.status = 2
      AND (r.control & 4 = 0 OR item.status = 7)
    RETURNING r.shard, r.id, r.status, r.ended_at,
              CASE WHEN r.status = 7 THEN r.cancelled_by END AS actor, CASE WHEN r.status = 7 THEN r.cancel_reason END AS cancel_reason
)
INSERT INTO durable.event (at, shard, type, run_id, actor, reason)
SELECT ended.ended_at, ended.shard, ended.status + 100, ended.id, ended.actor, ended.cancel_reason
FROM ended;
