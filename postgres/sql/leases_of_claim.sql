-- Returns the runs that a claim took, by its worker ($2) and nonce ($3), if their leases still end at the
-- time that the claim set ($1). It finds the runs of a claim whose result was lost. It needs two index
-- probes for each lane with runs.
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
)
SELECT r.id, r.epoch
FROM lane
CROSS JOIN LATERAL (
    SELECT r.id, r.epoch
    FROM durable.run AS r
    WHERE r.lane = lane.lane AND r.wake_at = $1::timestamptz
      AND r.status = 2 AND r.owner = $2::uuid AND (r.epoch & 4294967295) = $3::bigint
    OFFSET 0
) AS r;
