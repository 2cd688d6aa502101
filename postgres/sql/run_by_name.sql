-- Returns the existing runs with which starts conflicted, by name and parent. It has two branches,
-- because "parent_id IS NOT DISTINCT FROM" cannot use an index, and millions of children may have the
-- same name, such as "charge". Parent and shard are compared as a row with the same row as both bounds. So the
-- planner cannot prove that parent_id is not NULL, and cannot take run_child, which would read all children of
-- the parent: PostgreSQL 17 and 18 take it, if "parent_id =" stands here. For ANY (ARRAY[shard, shard]) see run_by_id.sql.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT item.ordinal,
       run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.priority, run.status, run.epoch, run.owner,
       run.crashes, run.input, run.output, run.error, run.reason, run.trace,
       run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at
FROM unnest($1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.text[]) WITH ORDINALITY AS item(shard, parent_id, name, ordinal)
CROSS JOIN LATERAL (
    SELECT r.* FROM durable.run AS r
    WHERE item.parent_id IS NULL AND r.parent_id IS NULL AND r.name OPERATOR(pg_catalog.=) item.name AND r.shard OPERATOR(pg_catalog.=) ANY (ARRAY[item.shard, item.shard])
    UNION ALL
    SELECT r.* FROM durable.run AS r
    WHERE r.name OPERATOR(pg_catalog.=) item.name AND ROW(r.parent_id, r.shard) OPERATOR(pg_catalog.>=) ROW(item.parent_id, item.shard)
      AND ROW(r.parent_id, r.shard) OPERATOR(pg_catalog.<=) ROW(item.parent_id, item.shard) AND r.shard OPERATOR(pg_catalog.=) ANY (ARRAY[item.shard, item.shard])
    OFFSET 0
) AS run;
