-- Deletes unused ones among up to $5 limit keys after the given one. Returns the last limit key that was read, and how many were
-- deleted. A request for a permit moves the time of the limit key on under its lock, so a limit key that is free, and was not used
-- since $3, has no new step.
WITH part AS MATERIALIZED (
    SELECT l.limit_name, l.key
    FROM durable.limit_key AS l
    WHERE (l.limit_name, l.key) > ($1::text, $2::text)
    ORDER BY l.limit_name, l.key
    LIMIT $5::integer
), unused AS MATERIALIZED (
    SELECT part.limit_name, part.key
    FROM part
    CROSS JOIN LATERAL (
        SELECT FROM durable.limit_key AS l
        WHERE l.limit_name = part.limit_name AND l.key = part.key AND l.now_at < $3::timestamptz
          AND (l.rate_used_until IS NULL OR l.rate_used_until <= $4::timestamptz) AND (l.closed_until IS NULL OR l.closed_until <= $4::timestamptz)
          AND NOT EXISTS (SELECT FROM durable.permit AS p WHERE p.limit_name = l.limit_name AND p.key = l.key)
        FOR UPDATE SKIP LOCKED
    ) AS free
), deleted AS (
    DELETE FROM durable.limit_key AS l
    USING unused
    WHERE l.limit_name = unused.limit_name AND l.key = unused.key
    RETURNING l.key
)
SELECT part.limit_name, part.key, (SELECT count(*) FROM deleted)
FROM part
ORDER BY part.limit_name DESC, part.key DESC
LIMIT 1;
