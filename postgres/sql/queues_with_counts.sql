-- Returns all queues with their counts, and when the run that has waited for the longest time to begin was
-- due.
SELECT q.name, q.declared, q.declared_version, q.declared_at, q.chosen, q.chosen_by, q.chosen_reason, q.chosen_at,
       q.paused_at, q.paused_by, q.pause_reason, q.executing, q.open, q.waiting, coalesce(keys.behind, 0)::bigint, oldest.arrived_at, q.rate_used_until,
       q.last_change
FROM durable.queue AS q
LEFT JOIN LATERAL (
    SELECT p.arrived_at
    FROM durable.place AS p
    WHERE p.queue = q.name AND p.state < 4 AND NOT p.begun AND p.arrived_at IS NOT NULL AND p.state > 1
    ORDER BY p.arrived_at
    LIMIT 1
) AS oldest ON true
LEFT JOIN LATERAL (SELECT sum(k.behind) AS behind FROM durable.queue_key AS k WHERE k.queue = q.name) AS keys ON true
WHERE NOT q.deleted
ORDER BY q.name;
