-- Returns runs by reference: a UUID, or the name of a root. A text that can be both is looked up as both,
-- and the run with this ID is preferred.
--
-- ANY (ARRAY[shard, shard]) is an equality to which the planner assigns twice the cost on the primary
-- key. With a plain equality, on tables without statistics, the two indexes have the same cost, and the
-- planner reads a whole shard through the primary key to find one name.
--
-- Crashes count since the last progress: if the run has more terminal checkpoints and children (6) together than at
-- the last crash (progress), there are none. The row itself is updated when the run leaves memory, and by the
-- next claim that counts crashes.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
--
-- Payloads are returned only on request: $4 requests the input, $5 the output and the error.
SELECT item.ordinal,
       run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.priority, run.status, run.epoch, run.owner,
       CASE WHEN run.crashes OPERATOR(pg_catalog.>) 0 AND (
                SELECT pg_catalog.count(CASE WHEN s.status OPERATOR(pg_catalog.>=) 3 THEN 1 END)
                    OPERATOR(pg_catalog.+) pg_catalog.count(CASE WHEN s.kind OPERATOR(pg_catalog.=) 6 THEN 1 END)
                FROM durable.step AS s
                WHERE s.shard OPERATOR(pg_catalog.=) run.shard AND s.run_id OPERATOR(pg_catalog.=) run.id
            ) OPERATOR(pg_catalog.>) run.progress THEN 0::smallint ELSE run.crashes END AS crashes,
       CASE WHEN $4::boolean THEN run.input END,
       CASE WHEN $5::boolean THEN run.output END,
       CASE WHEN $5::boolean THEN run.error END,
       run.reason, run.trace,
       run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at
FROM unnest($1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.text[]) WITH ORDINALITY AS item(shard, id, name, ordinal)
CROSS JOIN LATERAL (
    SELECT 1 AS choice, r.* FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.id
    UNION ALL
    SELECT 2 AS choice, r.* FROM durable.run AS r
    WHERE r.name OPERATOR(pg_catalog.=) item.name AND r.parent_id IS NULL AND r.shard OPERATOR(pg_catalog.=) ANY (ARRAY[item.shard, item.shard])
    ORDER BY choice
    LIMIT 1
) AS run;
