-- Does the same as run_finish.sql for a flush in which one run ends; see run_insert_one.sql.
WITH ended AS (
    UPDATE durable.run AS r
    SET status = $4::smallint, wake_at = NULL, reason = $7::text,
        owner = NULL, woken = false, ended_at = $9::timestamptz,
        output = $5::bytea, error = $6::bytea, trace = coalesce($8::text, r.trace)
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
      AND (r.control & 4 = 0 OR $4::smallint = 7)
    RETURNING r.shard, r.id, r.status, r.ended_at,
              CASE WHEN r.status = 7 THEN r.cancelled_by END AS actor, CASE WHEN r.status = 7 THEN r.cancel_reason END AS cancel_reason
)
INSERT INTO durable.event (at, shard, type, run_id, actor, reason)
SELECT ended.ended_at, ended.shard, ended.status + 100, ended.id, ended.actor, ended.cancel_reason
FROM ended;
