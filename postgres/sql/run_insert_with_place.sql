-- Creates runs as run_insert_any.sql does, and the places of those that it creates: they are in queues with
-- settings, or have a time by which they must have begun (control 8).
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
WITH made AS (
    INSERT INTO durable.run (
        shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
        input, trace, created_at, started_at, wake_at, deadline_at, detached, lane, priority, timeout, control
    )
    SELECT
        item.shard, item.id, item.parent_id, item.name, item.workflow, item.version, item.queue, item.status, item.epoch, item.owner,
        item.input, item.trace, item.created_at, item.started_at, item.wake_at, item.deadline_at, item.detached, item.lane, item.priority, item.timeout, item.control
    FROM unnest(
        $1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.text[], $6::pg_catalog.text[],
        $7::smallint[], $8::bigint[], $9::pg_catalog.uuid[], $10::pg_catalog.bytea[], $11::pg_catalog.text[],
        $12::pg_catalog.timestamptz[], $13::pg_catalog.timestamptz[], $14::pg_catalog.timestamptz[], $15::pg_catalog.timestamptz[], $16::boolean[],
        $17::bigint[], $18::smallint[], $19::bigint[], $20::pg_catalog.uuid[], $21::bigint[], $22::smallint[]
    ) AS item(
        shard, id, name, workflow, version, queue,
        status, epoch, owner, input, trace,
        created_at, started_at, wake_at, deadline_at, detached, lane, priority, timeout,
        parent_id, parent_epoch, control
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
    FROM unnest($23::smallint[], $24::pg_catalog.uuid[], $25::pg_catalog.text[], $26::pg_catalog.text[]) AS item(shard, run_id, key, value)
    WHERE (item.run_id OPERATOR(pg_catalog.=) ANY (SELECT made.id FROM made)) IS TRUE
    ON CONFLICT (shard, run_id, key) DO NOTHING
), placed AS (
    INSERT INTO durable.place (shard, run_id, queue, key, weight, priority, root, state, start_by)
    SELECT item.shard, item.run_id, item.queue, item.key, item.weight, item.priority, item.root, 1, item.start_by
    FROM unnest(
        $27::smallint[], $28::pg_catalog.uuid[], $29::pg_catalog.text[], $30::pg_catalog.text[], $31::integer[], $32::smallint[], $33::boolean[], $34::pg_catalog.timestamptz[]
    ) AS item(shard, run_id, queue, key, weight, priority, root, start_by)
    WHERE (item.run_id OPERATOR(pg_catalog.=) ANY (SELECT made.id FROM made)) IS TRUE
    ON CONFLICT (shard, run_id) DO NOTHING
)
SELECT FROM made;
