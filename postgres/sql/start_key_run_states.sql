-- Reads the state of runs that starts with one key lead to.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT run.id, run.name, run.status, run.control, run.epoch, run.queue, run.priority, run.version
FROM unnest($1::smallint[], $2::pg_catalog.uuid[]) AS item(shard, id)
CROSS JOIN LATERAL (
    SELECT r.id, r.name, r.status, r.control, r.epoch, r.queue, r.priority, r.version
    FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.id
    OFFSET 0
) AS run;
