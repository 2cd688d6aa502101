-- Returns for each queue the $1 keys with the most waiting runs, and their counts.
SELECT q.name, k.key, k.executing, k.open, k.in_line + k.behind, k.behind
FROM durable.queue AS q
CROSS JOIN LATERAL (
    SELECT k.key, k.executing, k.open, k.in_line, k.behind
    FROM durable.queue_key AS k
    WHERE k.queue = q.name AND k.key <> ''
    ORDER BY k.in_line + k.behind DESC, k.executing DESC, k.open DESC, k.key
    LIMIT $1::integer
) AS k
WHERE NOT q.deleted
ORDER BY q.name;
