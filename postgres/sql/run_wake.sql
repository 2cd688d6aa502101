-- Wakes runs: because a child has ended, because a signal exists, or, with neither, because of a control
-- request. A waiting run (3) becomes claimable. A running run (2) is marked, so that it checks again
-- before it parks. Runs with another status need no waking.
--
-- The same statement notifies workers, but only if that is necessary: all transactions that notify take
-- the same lock at their commit. An empty payload means that a run is claimable, a worker's ID that one
-- of its runs was woken. The server sends each payload of a transaction only once.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
WITH due AS MATERIALIZED (
    SELECT item.shard, item.id, pg_catalog.min(item.at) AS at -- a run that several items wake is updated once
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
    GROUP BY item.shard, item.id
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
