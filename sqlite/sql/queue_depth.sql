-- Selects how many runs of a queue wait: those that an admission has seen, and those that no admission has seen yet, of
-- which a limited number is counted.
SELECT q.waiting + (
    SELECT count(*)
    FROM (
        SELECT 1 FROM durable_place
        WHERE queue = ?1 AND state < 4 AND NOT begun AND arrived_at IS NULL AND state = 1
        LIMIT ?2 + 0
    )
)
FROM durable_queue AS q
WHERE q.name = ?1;
