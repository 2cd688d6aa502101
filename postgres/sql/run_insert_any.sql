-- Creates runs of any kind, one row per item, and sets the tags of those that it creates. A run whose
-- name exists under the same parent is left unchanged. A child is not created if its parent is no longer
-- running (2) at the writer's epoch, or is to be paused or cancelled. runs_lock_for_batch.sql has locked the parent
-- before, so its state cannot change. The count shows whether all were new.
--
-- An existing run gets no tags: a caller that repeats a start whose result was lost must not restore tags
-- that were removed since. IS TRUE makes the executor look up each ID in a hash of the new IDs. As a join
-- it would be a nested loop over two lists, because of the planner's settings in set_engine_session_settings.sql.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
WITH made AS (
    INSERT INTO durable.run (
        shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
        input, trace, created_at, started_at, wake_at, deadline_at, detached, lane, priority, timeout
    )
    SELECT
        item.shard, item.id, item.parent_id, item.name, item.workflow, item.version, item.queue, item.status, item.epoch, item.owner,
        item.input, item.trace, item.created_at, item.started_at, item.wake_at, item.deadline_at, item.detached, item.lane, item.priority, item.timeout
    FROM unnest(
        $1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.text[], $6::pg_catalog.text[],
        $7::smallint[], $8::bigint[], $9::pg_catalog.uuid[], $10::pg_catalog.bytea[], $11::pg_catalog.text[],
        $12::pg_catalog.timestamptz[], $13::pg_catalog.timestamptz[], $14::pg_catalog.timestamptz[], $15::pg_catalog.timestamptz[], $16::boolean[],
        $17::bigint[], $18::smallint[], $19::bigint[], $20::pg_catalog.uuid[], $21::bigint[]
    ) AS item(
        shard, id, name, workflow, version, queue,
        status, epoch, owner, input, trace,
        created_at, started_at, wake_at, deadline_at, detached, lane, priority, timeout,
        parent_id, parent_epoch
    )
    WHERE item.parent_id IS NULL OR EXISTS (
        SELECT FROM durable.run AS p
        WHERE p.shard OPERATOR(pg_catalog.=) item.shard AND p.id OPERATOR(pg_catalog.=) item.parent_id
          AND p.epoch OPERATOR(pg_catalog.=) item.parent_epoch AND p.status OPERATOR(pg_catalog.=) 2 AND p.control OPERATOR(pg_catalog.=) 0
        OFFSET 0
    )
    ON CONFLICT (name, parent_id, shard) DO NOTHING
    RETURNING id
), tagged AS (
    INSERT INTO durable.tag (shard, run_id, key, value)
    SELECT item.shard, item.run_id, item.key, item.value
    FROM unnest($22::smallint[], $23::pg_catalog.uuid[], $24::pg_catalog.text[], $25::pg_catalog.text[]) AS item(shard, run_id, key, value)
    WHERE (item.run_id OPERATOR(pg_catalog.=) ANY (SELECT made.id FROM made)) IS TRUE
    ON CONFLICT (shard, run_id, key) DO NOTHING
)
SELECT FROM made;
