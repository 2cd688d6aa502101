-- Returns why steps were not written: the run's status, epoch and control, and the step's row. Each may
-- be missing. It is a statement of its own after the write, because the snapshot of the write cannot see
-- concurrent changes.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT item.ordinal, run.status, run.epoch, run.control,
       step.kind, step.status, step.attempt, step.epoch, step.output, step.error,
       step.started_at, step.ended_at, step.next_at, step.seq, step.failures
FROM unnest($1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.text[]) WITH ORDINALITY AS item(shard, run_id, name, ordinal)
LEFT JOIN LATERAL (
    SELECT r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.run_id
    OFFSET 0
) AS run ON true
LEFT JOIN LATERAL (
    SELECT s.* FROM durable.step AS s
    WHERE s.shard OPERATOR(pg_catalog.=) item.shard AND s.run_id OPERATOR(pg_catalog.=) item.run_id AND s.name OPERATOR(pg_catalog.=) item.name
    OFFSET 0
) AS step ON true;
