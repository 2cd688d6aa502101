-- Selects all queues with their counts, and when the run that has waited for the longest time to begin was due.
SELECT q.name, q.declared, q.declared_version, q.declared_at, q.chosen, q.chosen_by, q.chosen_reason, q.chosen_at,
       q.paused_at, q.paused_by, q.pause_reason, q.executing, q.open, q.waiting,
       (SELECT coalesce(sum(k.behind), 0) FROM durable_queue_key AS k WHERE k.queue = q.name), (
           SELECT p.arrived_at
           FROM durable_place AS p
           WHERE p.queue = q.name AND p.state < 4 AND NOT p.begun AND p.arrived_at IS NOT NULL AND p.state > 1
           ORDER BY p.arrived_at
           LIMIT 1
       ), q.rate_used_until, q.last_change
FROM durable_queue AS q
WHERE NOT q.deleted
ORDER BY q.name;
