-- Wakes runs: for a child that has ended, for a signal that is there, or, with neither, for
-- an order. One that waits (3) becomes claimable; one that is running (2) is marked, and
-- looks again before it parks. Others need no waking.
--
-- Who has to hear of it is told in the same statement, and only if somebody has to: all
-- transactions that notify take a lock at their commit. An empty text says that a run is
-- claimable, a worker's ID that it has news. The server itself tells each text once.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
WITH due AS MATERIALIZED (
    SELECT item.shard, item.id, item.at
    FROM unnest($1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.uuid[], $4::pg_catalog.uuid[], $5::pg_catalog.timestamptz[]) AS item(shard, id, child, signal, at)
    WHERE (item.child IS NULL AND item.signal IS NULL)
       OR EXISTS (
           SELECT FROM durable.run AS c
           WHERE c.shard OPERATOR(pg_catalog.=) item.shard AND c.id OPERATOR(pg_catalog.=) item.child AND c.status OPERATOR(pg_catalog.>=) 5
           OFFSET 0
       )
       OR EXISTS (
           SELECT FROM durable.signal AS s
           WHERE s.shard OPERATOR(pg_catalog.=) item.shard AND s.run_id OPERATOR(pg_catalog.=) item.id AND s.id OPERATOR(pg_catalog.=) item.signal
           OFFSET 0
       )
), woken AS (
    UPDATE durable.run AS r
    SET wake_at = CASE WHEN r.status OPERATOR(pg_catalog.=) 3 THEN least(r.wake_at, due.at) ELSE r.wake_at END,
        woken = r.status OPERATOR(pg_catalog.=) 2
    FROM due
    WHERE r.shard OPERATOR(pg_catalog.=) due.shard AND r.id OPERATOR(pg_catalog.=) due.id AND r.status OPERATOR(pg_catalog.=) ANY ('{2,3}'::integer[])
    RETURNING r.status, r.owner
)
SELECT pg_catalog.pg_notify($6::pg_catalog.text, CASE WHEN woken.status OPERATOR(pg_catalog.=) 3 THEN '' ELSE coalesce(woken.owner::pg_catalog.text, '') END)
FROM woken;
