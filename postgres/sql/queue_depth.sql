-- Returns how many runs of the queue $1 wait: those that an admission has seen, and those that no admission
-- has seen yet, of which at most $2 are counted.
SELECT q.waiting + (
    SELECT count(*)
    FROM (
        SELECT FROM durable.place AS p
        WHERE p.queue = $1::text AND p.state < 4 AND NOT p.begun AND p.arrived_at IS NULL AND p.state = 1
        LIMIT $2::integer
    ) AS unseen
)
FROM durable.queue AS q
WHERE q.name = $1::text;
