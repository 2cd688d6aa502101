-- Creates root runs without tags, one row per item. A run whose name exists is left unchanged. The count
-- shows whether all were new; if not, run_by_name.sql reads the existing ones. run_insert_any.sql creates
-- children and runs with tags.
--
-- For how the arrays are read see step_insert.sql.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
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
    AS item(name, workflow, version, queue, input, trace, i)
ON CONFLICT (name, parent_id, shard) DO NOTHING
RETURNING true;
