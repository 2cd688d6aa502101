-- Selects the workers, oldest first.
SELECT id, name, version, capacity, active, state, started_at, heartbeat_at, workflows, queues, silent_at, schema_version, quiet, last_change, clock_ahead
FROM durable_worker
ORDER BY started_at, id;
