-- Counts the ends of children in the calls of their parents that wait for many children, and wakes the parents for which enough
-- ends are counted. A parent whose call has no row is woken by each end.
--
-- A parent is woken as by run_wake.sql. An end that wakes no parent makes a waiting parent (3) claimable after a minute, so that it
-- looks at its children even if the count is wrong. This changes the parent's row at most once a minute.
--
-- The statement before has locked the parents, so two transactions count one after the other.
WITH ended AS MATERIALIZED (
    SELECT item.shard, item.run_id, item.name, count(*) AS ends, min(item.at) AS at
    FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[]) AS item(shard, run_id, child, name, at)
    WHERE EXISTS (
        SELECT FROM durable.run AS c
        WHERE c.shard = item.shard AND c.id = item.child AND c.status >= 5
        OFFSET 0
    )
    GROUP BY item.shard, item.run_id, item.name
), counted AS (
    UPDATE durable.step AS s
    SET child_ends = coalesce(s.child_ends, 0) + ended.ends
    FROM ended
    WHERE s.shard = ended.shard AND s.run_id = ended.run_id AND s.name = ended.name
    RETURNING s.shard, s.run_id, s.name, (s.child_ends_awaited > 0 AND s.child_ends >= s.child_ends_awaited) IS NOT TRUE AS waits
), due AS MATERIALIZED (
    SELECT ended.shard, ended.run_id,
           min(ended.at) FILTER (WHERE counted.waits IS NOT TRUE) AS at,
           min(ended.at) + interval '1 minute' AS latest
    FROM ended
    LEFT JOIN counted ON counted.shard = ended.shard AND counted.run_id = ended.run_id AND counted.name = ended.name
    GROUP BY ended.shard, ended.run_id
), woken AS (
    UPDATE durable.run AS r
    SET wake_at = CASE WHEN r.status = 3 THEN least(r.wake_at, due.at, due.latest) ELSE r.wake_at END,
        woken = r.status = 2
    FROM due
    WHERE r.shard = due.shard AND r.id = due.run_id
      AND (due.at IS NOT NULL AND r.status = ANY ('{2,3}'::integer[])
           OR r.status = 3 AND (r.wake_at IS NULL OR r.wake_at > due.latest))
    RETURNING r.status, r.owner, due.at IS NOT NULL AS enough
)
SELECT pg_notify($6::text, CASE WHEN woken.status = 3 THEN '' ELSE coalesce(woken.owner::text, '') END)
FROM woken
WHERE woken.enough;
