-- Offers permits of locked limit keys to steps, and wakes their runs: a waiting run (3) becomes claimable at $7, a
-- running one (2) is marked. Returns the woken runs. A run that another transaction has locked gets no offer now,
-- so that no limit key waits for a transaction of somebody else.
--
-- The statement notifies as run_wake.sql does.
WITH item AS MATERIALIZED (
    SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
        AS item(shard, run_id, step, limit_name, key, until_at)
), locked AS MATERIALIZED (
    SELECT r.shard, r.id
    FROM (SELECT DISTINCT shard, run_id FROM item) AS due
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id FROM durable.run AS r
        WHERE r.shard = due.shard AND r.id = due.run_id AND r.status IN (2, 3)
        FOR UPDATE SKIP LOCKED
    ) AS r
), offered AS (
    UPDATE durable.permit AS p
    SET status = 2, until_at = item.until_at
    FROM item
    JOIN locked ON locked.shard = item.shard AND locked.id = item.run_id
    WHERE p.shard = item.shard AND p.run_id = item.run_id AND p.step = item.step AND p.limit_name = item.limit_name AND p.key = item.key
    RETURNING 1
), woken AS (
    UPDATE durable.run AS r
    SET wake_at = CASE WHEN r.status = 3 THEN least(r.wake_at, $7::timestamptz) ELSE r.wake_at END,
        woken = r.status = 2
    FROM locked
    WHERE r.shard = locked.shard AND r.id = locked.id AND r.status IN (2, 3)
    RETURNING r.id, r.status, r.owner
)
SELECT woken.id, pg_notify($8::text, CASE WHEN woken.status = 3 THEN '' ELSE coalesce(woken.owner::text, '') END)
FROM woken;
