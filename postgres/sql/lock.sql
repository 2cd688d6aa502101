-- Locks the runs that a batch concerns beside its own rows: parents, runs that are sent
-- signals or take them, and those that end with them. So what reads a run and what
-- wakes it happen one after the other.
--
-- The items come in the order of (shard, id), and a nested loop keeps it, so that two
-- batches cannot deadlock. NO KEY: a lock that keeps off updates is enough.
--
-- A user's transaction may hold one of them, and for long: whoever waits here keeps a
-- whole batch waiting, so patience is short (session.sql); in a user's own transaction it is
-- the user's.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.count(*)
FROM unnest($1::smallint[], $2::pg_catalog.uuid[]) AS item(shard, id)
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.id
    FOR NO KEY UPDATE
) AS run;
