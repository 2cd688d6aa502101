-- Reads the fires of a schedule whose times are not among the latest $3, without the one that waits (2).
SELECT f.at, f.fired_at, f.kind, f.outcome, f.run_id
FROM (
    SELECT o.at, o.fired_at, o.kind, o.outcome, o.run_id
    FROM durable.fire AS o
    WHERE o.shard = $1::smallint AND o.schedule = $2::text
    ORDER BY o.at DESC
    OFFSET $3::integer LIMIT $4::integer
) AS f
WHERE f.outcome <> 2;
