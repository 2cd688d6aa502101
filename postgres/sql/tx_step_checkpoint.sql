-- Records one step inside a user's transaction, which the user may hold open. Therefore the fence takes a
-- lock here: FOR SHARE on the run prevents another worker from claiming it until that transaction ends. A
-- row that is not terminal is updated by the rule of step_update.sql. A terminal row is left unchanged,
-- and step_not_written_reasons.sql reads it.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
WITH fence AS MATERIALIZED (
    SELECT r.id FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) $1::smallint AND r.id OPERATOR(pg_catalog.=) $2::pg_catalog.uuid AND r.epoch OPERATOR(pg_catalog.=) $7::bigint AND r.status OPERATOR(pg_catalog.=) 2
    FOR SHARE
)
INSERT INTO durable.step AS s (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
)
SELECT $1::smallint, $2::pg_catalog.uuid, $3::pg_catalog.text, $4::smallint, $5::smallint, $6::integer, $7::bigint,
       $8::pg_catalog.bytea, $9::pg_catalog.bytea, $10::pg_catalog.timestamptz, $11::pg_catalog.timestamptz, $12::pg_catalog.timestamptz,
       $13::integer, $14::pg_catalog.bytea
FROM fence
ON CONFLICT (shard, run_id, name) DO UPDATE
SET status = excluded.status, attempt = excluded.attempt, epoch = excluded.epoch,
    output = excluded.output, error = excluded.error, failures = excluded.failures,
    started_at = excluded.started_at, ended_at = excluded.ended_at, next_at = excluded.next_at
WHERE s.status OPERATOR(pg_catalog.<) 3
  AND (excluded.status OPERATOR(pg_catalog.>=) 3 OR s.epoch OPERATOR(pg_catalog.<>) excluded.epoch OR s.attempt OPERATOR(pg_catalog.<) excluded.attempt
       OR (s.attempt OPERATOR(pg_catalog.=) excluded.attempt AND s.status OPERATOR(pg_catalog.<=) excluded.status))
RETURNING true;
