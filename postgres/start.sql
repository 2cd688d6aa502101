-- Creates root runs without tags, one row per item; a name that is there already is left
-- alone. The count says whether all were new. If not, run_by_name.sql reads what is
-- there. Children and runs with tags go by start_any.sql.
--
-- For how the arrays are read see step_insert.sql.
INSERT INTO durable.run (
    shard, id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at, detached
)
SELECT
    ($1::smallint[])[i], ($2::uuid[])[i], item.name, item.workflow, item.version, item.queue,
    ($7::smallint[])[i], ($8::bigint[])[i], ($9::uuid[])[i],
    item.input, item.trace,
    ($12::timestamptz[])[i], ($13::timestamptz[])[i], ($14::timestamptz[])[i], ($15::timestamptz[])[i], ($16::boolean[])[i]
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $10::bytea[], $11::text[]) WITH ORDINALITY
    AS item(name, workflow, version, queue, input, trace, i)
ON CONFLICT (name, parent_id, shard) DO NOTHING;
