-- Returns the registered workers, oldest first.
SELECT id, name, version, capacity, active, state, started_at, heartbeat_at, silent_at, schema_version, queues, workflows, quiet, last_change, clock_ahead
FROM durable.worker
ORDER BY started_at, id;
