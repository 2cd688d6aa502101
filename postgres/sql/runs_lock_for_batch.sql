-- Locks the runs that a batch concerns beside its own rows: parents, runs that receive or are sent
-- signals, and runs that end in the same batch. So a write that reads a run and a write that wakes it
-- happen one after the other.
--
-- The items come in the order of (shard, id), and a nested loop keeps it, so that two batches cannot
-- deadlock. NO KEY UPDATE is enough to prevent updates.
--
-- A user's transaction may hold one of the locks for a long time, and a wait here delays a whole batch,
-- so the lock timeout is short (set_engine_session_settings.sql). In a user's own transaction it is the user's.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.count(*)
FROM unnest($1::smallint[], $2::pg_catalog.uuid[]) AS item(shard, id)
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.id
    FOR NO KEY UPDATE
) AS run;
