-- Returns up to $3 limit keys after the given one for which a step waits (1), with one index probe for each limit key.
WITH RECURSIVE line AS (
    (
        SELECT p.limit_name, p.key
        FROM durable.permit AS p
        WHERE p.status = 1 AND (p.limit_name, p.key) > ($1::text, $2::text)
        ORDER BY p.limit_name, p.key
        LIMIT 1
    )
    UNION ALL
    SELECT next.limit_name, next.key
    FROM line
    CROSS JOIN LATERAL (
        SELECT p.limit_name, p.key
        FROM durable.permit AS p
        WHERE p.status = 1 AND (p.limit_name, p.key) > (line.limit_name, line.key)
        ORDER BY p.limit_name, p.key
        LIMIT 1
    ) AS next
)
SELECT limit_name, key FROM line LIMIT $3::integer;
