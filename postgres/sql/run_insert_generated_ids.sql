-- Creates root runs without tags whose names are generated IDs, and fails if one of the names exists;
-- then run_insert.sql creates the others. Such a name exists only if the result of the same start was
-- lost. ON CONFLICT would check each name first, and insert rows so that they can be withdrawn; that
-- costs a fifth of the statement.
--
-- For how the arrays are read see step_insert.sql.
INSERT INTO durable.run (
    shard, id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at, detached, lane, priority, timeout
)
SELECT
    ($1::smallint[])[i], ($2::pg_catalog.uuid[])[i], item.name, item.workflow, item.version, item.queue,
    ($7::smallint[])[i], ($8::bigint[])[i], ($9::pg_catalog.uuid[])[i],
    item.input, item.trace,
    ($12::pg_catalog.timestamptz[])[i], ($13::pg_catalog.timestamptz[])[i], ($14::pg_catalog.timestamptz[])[i], ($15::pg_catalog.timestamptz[])[i], ($16::boolean[])[i],
    ($17::bigint[])[i], ($18::smallint[])[i], ($19::bigint[])[i]
FROM unnest($3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.text[], $6::pg_catalog.text[], $10::pg_catalog.bytea[], $11::pg_catalog.text[]) WITH ORDINALITY
    AS item(name, workflow, version, queue, input, trace, i);
