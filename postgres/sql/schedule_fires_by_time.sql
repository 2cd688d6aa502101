-- Reads which of the given times have started a run (1), or wait (2). Each time is looked up by itself, so that
-- the planner uses the primary key.
SELECT found.at
FROM unnest($3::timestamptz[]) AS item(at)
CROSS JOIN LATERAL (
    SELECT f.at FROM durable.fire AS f
    WHERE f.shard = $1::smallint AND f.schedule = $2::text AND f.at = item.at AND f.outcome IN (1, 2)
    OFFSET 0
) AS found;
