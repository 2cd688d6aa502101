-- Counts runs by status, up to $2 of each range of an index: of each lane those that were due at $1, and those that are due
-- later; those that wait for no time (3); and those that are paused (4), have failed (6), and have expired (9). The last
-- column is true if a range with runs of the status has more of them. Completed and cancelled runs are not counted.
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
SELECT counted.status, count(*), bool_or(counted.more)
FROM (
    SELECT due.status, due.more
    FROM lane
    CROSS JOIN LATERAL (
        SELECT found.status, count(*) OVER () >= $2::integer AS more
        FROM (
            SELECT r.status FROM durable.run AS r
            WHERE r.lane = lane.lane AND r.wake_at <= $1::timestamptz
            ORDER BY r.wake_at
            LIMIT $2::integer
        ) AS found
    ) AS due
    UNION ALL
    SELECT later.status, later.more
    FROM lane
    CROSS JOIN LATERAL (
        SELECT found.status, count(*) OVER () >= $2::integer AS more
        FROM (
            SELECT r.status FROM durable.run AS r
            WHERE r.lane = lane.lane AND r.wake_at > $1::timestamptz
            ORDER BY r.wake_at
            LIMIT $2::integer
        ) AS found
    ) AS later
    UNION ALL
    SELECT waits.status, count(*) OVER () >= $2::integer
    FROM (SELECT r.status FROM durable.run AS r WHERE r.wake_at IS NULL AND r.status = 3 ORDER BY r.id LIMIT $2::integer) AS waits
    UNION ALL
    SELECT paused.status, count(*) OVER () >= $2::integer
    FROM (SELECT r.status FROM durable.run AS r WHERE r.wake_at IS NULL AND r.status = 4 ORDER BY r.id LIMIT $2::integer) AS paused
    UNION ALL
    SELECT failed.status, count(*) OVER () >= $2::integer
    FROM (SELECT r.status FROM durable.run AS r WHERE r.wake_at IS NULL AND r.status = 6 ORDER BY r.id LIMIT $2::integer) AS failed
    UNION ALL
    SELECT expired.status, count(*) OVER () >= $2::integer
    FROM (SELECT r.status FROM durable.run AS r WHERE r.wake_at IS NULL AND r.status = 9 ORDER BY r.id LIMIT $2::integer) AS expired
) AS counted
GROUP BY counted.status
ORDER BY counted.status;
