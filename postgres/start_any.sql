-- Creates runs of any kind, one row per item, and sets the tags of those that it creates; a name
-- that its parent has already is left alone, and so is a child whose parent is not running (2)
-- at its writer's epoch any more, or was asked to leave: lock.sql has locked the parent
-- before, so what is read here holds. The count says whether all were new.
--
-- A run that was there gets no tags: whoever lost the answer and starts it again must not
-- bring back what was removed since. IS TRUE keeps the IN a look into a hash of the new IDs. As
-- a join it would be a nested loop over two lists, with the planner's settings of session.sql.
WITH made AS (
    INSERT INTO durable.run (
        shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
        input, trace, created_at, started_at, wake_at, deadline_at, detached
    )
    SELECT
        item.shard, item.id, item.parent_id, item.name, item.workflow, item.version, item.queue, item.status, item.epoch, item.owner,
        item.input, item.trace, item.created_at, item.started_at, item.wake_at, item.deadline_at, item.detached
    FROM unnest(
        $1::smallint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::smallint[], $8::bigint[], $9::uuid[], $10::bytea[], $11::text[],
        $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::boolean[],
        $17::uuid[], $18::bigint[]
    ) AS item(
        shard, id, name, workflow, version, queue,
        status, epoch, owner, input, trace,
        created_at, started_at, wake_at, deadline_at, detached,
        parent_id, parent_epoch
    )
    WHERE item.parent_id IS NULL OR EXISTS (
        SELECT FROM durable.run AS p
        WHERE p.shard = item.shard AND p.id = item.parent_id
          AND p.epoch = item.parent_epoch AND p.status = 2 AND p.control = 0
        OFFSET 0
    )
    ON CONFLICT (name, parent_id, shard) DO NOTHING
    RETURNING id
), tagged AS (
    INSERT INTO durable.tag (shard, run_id, key, value)
    SELECT item.shard, item.run_id, item.key, item.value
    FROM unnest($19::smallint[], $20::uuid[], $21::text[], $22::text[]) AS item(shard, run_id, key, value)
    WHERE (item.run_id IN (SELECT made.id FROM made)) IS TRUE
    ON CONFLICT (shard, run_id, key) DO NOTHING
)
SELECT FROM made;
