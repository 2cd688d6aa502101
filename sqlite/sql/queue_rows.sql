-- Selects the rows of all queues, without counts.
SELECT name, coalesce(chosen, declared), paused_at, deleted
FROM durable_queue
ORDER BY name;
