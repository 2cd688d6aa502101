-- Creates root runs without tags, whose names are the IDs that were made for them, and fails if
-- one is there: then start.sql creates the others. Such a name can only be there if the answer to its own
-- start was lost. To look for it each time, and to insert so that it could be taken back, costs a
-- fifth of the statement.
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
    AS item(name, workflow, version, queue, input, trace, i);
