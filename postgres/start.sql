-- Creates runs, one row per item; a name that its parent has already is left alone.
-- The count says whether all were new. If not, run_by_name.sql reads what is there.
INSERT INTO durable.run (
    shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at
)
SELECT
    shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at
FROM unnest(
    $1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[],
    $9::integer[], $10::uuid[], $11::bytea[], $12::text[],
    $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[]
) AS item(
    shard, id, parent_id, name, workflow, version, queue, status,
    epoch, owner, input, trace,
    created_at, started_at, wake_at, deadline_at
)
ON CONFLICT (name, parent_id, shard) DO NOTHING;
