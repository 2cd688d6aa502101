-- Reads the runs that stood in the way of starts, by name and parent.
-- Two branches, because "parent_id IS NOT DISTINCT FROM" cannot use an index: a
-- child's name, such as "charge", may be that of millions. For IN (shard, shard) see
-- get.sql.
SELECT item.ordinal,
       run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.status, run.epoch, run.owner,
       run.crashes, run.input, run.output, run.error, run.reason, run.trace,
       run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at
FROM unnest($1::smallint[], $2::uuid[], $3::text[]) WITH ORDINALITY AS item(shard, parent_id, name, ordinal)
CROSS JOIN LATERAL (
    SELECT r.* FROM durable.run AS r
    WHERE item.parent_id IS NULL AND r.parent_id IS NULL AND r.name = item.name AND r.shard IN (item.shard, item.shard)
    UNION ALL
    SELECT r.* FROM durable.run AS r
    WHERE r.parent_id = item.parent_id AND r.name = item.name AND r.shard IN (item.shard, item.shard)
    OFFSET 0
) AS run;
