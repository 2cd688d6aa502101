-- Records one step inside a transaction of the user's, who may hold it open. So the
-- fence locks here: FOR SHARE on the run keeps it from being claimed by another
-- until that transaction ends. A row that is not terminal is moved on, under the same
-- rule as in step_update.sql; a terminal one is left alone, and step_state.sql reads it.
WITH fence AS MATERIALIZED (
    SELECT FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $7::bigint AND r.status = 2
    FOR SHARE
)
INSERT INTO durable.step AS s (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at
)
SELECT $1::smallint, $2::uuid, $3::text, $4::smallint, $5::smallint, $6::integer, $7::bigint,
       $8::bytea, $9::bytea, $10::timestamptz, $11::timestamptz, $12::timestamptz
FROM fence
ON CONFLICT (shard, run_id, name) DO UPDATE
SET status = excluded.status, attempt = excluded.attempt, epoch = excluded.epoch,
    output = excluded.output, error = excluded.error,
    started_at = excluded.started_at, ended_at = excluded.ended_at, next_at = excluded.next_at
WHERE s.status < 3
  AND (excluded.status >= 3 OR s.epoch <> excluded.epoch OR s.attempt < excluded.attempt
       OR (s.attempt = excluded.attempt AND s.status <= excluded.status));
