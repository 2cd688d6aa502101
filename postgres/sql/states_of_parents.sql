-- Returns the states of the parents of children that were not created.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT item.ordinal, r.status, r.epoch, r.control
FROM unnest($1::smallint[], $2::pg_catalog.uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
CROSS JOIN LATERAL (
    SELECT r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.id
    OFFSET 0
) AS r;
