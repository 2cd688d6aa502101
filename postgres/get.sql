-- Reads runs by reference: a UUID, or the name of a root. A text that could be both is
-- looked up as both, and the ID is preferred.
--
-- IN (shard, shard) is an equality that costs the planner twice as much on the primary
-- key. Without it, on tables without statistics, the two indexes tie, and it reads all
-- of a shard through the primary key to find one name.
SELECT item.ordinal,
       run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.status, run.epoch, run.owner,
       run.crashes, run.input, run.output, run.error, run.reason, run.trace,
       run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at
FROM unnest($1::smallint[], $2::uuid[], $3::text[]) WITH ORDINALITY AS item(shard, id, name, ordinal)
CROSS JOIN LATERAL (
    SELECT 1 AS choice, r.* FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    UNION ALL
    SELECT 2 AS choice, r.* FROM durable.run AS r
    WHERE r.name = item.name AND r.parent_id IS NULL AND r.shard IN (item.shard, item.shard)
    ORDER BY choice
    LIMIT 1
) AS run;
