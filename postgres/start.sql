-- Creates runs, one row per item; a name that its parent has already is left alone, and
-- so is a child whose parent is not running (2) at its writer's epoch any more, or was
-- asked to leave: lock.sql has locked the parent before, so what is read here holds.
-- The count says whether all were new. If not, run_by_name.sql reads what is there.
INSERT INTO durable.run (
    shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at, detached
)
SELECT
    item.shard, item.id, item.parent_id, item.name, item.workflow, item.version, item.queue, item.status, item.epoch, item.owner,
    item.input, item.trace, item.created_at, item.started_at, item.wake_at, item.deadline_at, item.detached
FROM unnest(
    $1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[],
    $9::integer[], $10::uuid[], $11::bytea[], $12::text[],
    $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[], $17::boolean[], $18::integer[]
) AS item(
    shard, id, parent_id, name, workflow, version, queue, status,
    epoch, owner, input, trace,
    created_at, started_at, wake_at, deadline_at, detached, parent_epoch
)
WHERE item.parent_id IS NULL OR EXISTS (
    SELECT FROM durable.run AS p
    WHERE p.shard = item.shard AND p.id = item.parent_id
      AND p.epoch = item.parent_epoch AND p.status = 2 AND p.control = 0
    OFFSET 0
)
ON CONFLICT (name, parent_id, shard) DO NOTHING;
