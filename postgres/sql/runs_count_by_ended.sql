-- Counts the runs that ended between $1 and $2, up to $3.
SELECT count(*)
FROM (
    SELECT FROM durable.run AS r
    WHERE r.ended_at > coalesce($1::timestamptz, '-infinity') AND r.ended_at < coalesce($2::timestamptz, 'infinity')
    ORDER BY r.ended_at
    LIMIT $3::integer
) AS ended;
