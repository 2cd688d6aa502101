-- Makes the runs of dead workers claimable now. The leases of all workers end soon, so a short range of
-- the wake index per lane contains them. Locked rows are left out: another transaction uses them, and
-- their leases end by themselves.
WITH RECURSIVE lane AS (
    (
        SELECT r.lane
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL
        ORDER BY r.lane
        LIMIT 1
    )
    UNION ALL
    SELECT ahead.lane
    FROM lane
    CROSS JOIN LATERAL (
        SELECT r.lane
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > lane.lane
        ORDER BY r.lane
        LIMIT 1
    ) AS ahead
), orphan AS MATERIALIZED (
    SELECT r.shard, r.id
    FROM lane
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id
        FROM durable.run AS r
        WHERE r.lane = lane.lane
          AND r.wake_at > $1::timestamptz AND r.wake_at <= $2::timestamptz
          AND r.status = 2 AND r.owner = ANY ($3::uuid[])
        FOR UPDATE SKIP LOCKED
    ) AS r
)
UPDATE durable.run AS r
SET wake_at = $1::timestamptz
FROM orphan
WHERE r.shard = orphan.shard AND r.id = orphan.id;
