-- Wakes runs: for a child that has ended, for a signal that is there, or, with neither, for
-- an order. One that waits (3) becomes claimable; one that is running (2) is marked, and
-- looks again before it parks. Others need no waking.
--
-- Who has to hear of it is told in the same statement, and only if somebody has to: all
-- transactions that notify take a lock at their commit. An empty text says that a run is
-- claimable, a worker's ID that it has news. The server itself tells each text once.
WITH due AS MATERIALIZED (
    SELECT item.shard, item.id, item.at
    FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::timestamptz[]) AS item(shard, id, child, signal, at)
    WHERE (item.child IS NULL AND item.signal IS NULL)
       OR EXISTS (
           SELECT FROM durable.run AS c
           WHERE c.shard = item.shard AND c.id = item.child AND c.status >= 5
           OFFSET 0
       )
       OR EXISTS (
           SELECT FROM durable.signal AS s
           WHERE s.shard = item.shard AND s.run_id = item.id AND s.id = item.signal
           OFFSET 0
       )
), woken AS (
    UPDATE durable.run AS r
    SET wake_at = CASE WHEN r.status = 3 THEN least(r.wake_at, due.at) ELSE r.wake_at END,
        woken = r.status = 2
    FROM due
    WHERE r.shard = due.shard AND r.id = due.id AND r.status IN (2, 3)
    RETURNING r.status, r.owner
)
SELECT pg_notify($6::text, CASE WHEN woken.status = 3 THEN '' ELSE coalesce(woken.owner::text, '') END)
FROM woken;
