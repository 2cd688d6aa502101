-- Does the same as run_insert_generated_ids.sql for a flush of one start; see run_insert_one.sql.
INSERT INTO durable.run (
    shard, id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at, detached, lane, priority, timeout
)
VALUES (
    $1::smallint, $2::pg_catalog.uuid, $3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text, $6::pg_catalog.text,
    $7::smallint, $8::bigint, $9::pg_catalog.uuid, $10::pg_catalog.bytea, $11::pg_catalog.text,
    $12::pg_catalog.timestamptz, $13::pg_catalog.timestamptz, $14::pg_catalog.timestamptz, $15::pg_catalog.timestamptz,
    $16::boolean, $17::bigint, $18::smallint, $19::bigint
);
