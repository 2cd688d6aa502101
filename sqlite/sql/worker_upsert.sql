-- Inserts a worker, or records its heartbeat. The values of quiet and last_change are for a worker whose row was removed
-- although it lives; only operators change them.
INSERT INTO durable_worker (id, name, version, capacity, active, state, started_at, heartbeat_at, silent_at, workflows, queues, schema_version, quiet, last_change, clock_ahead)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0), ?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, version = excluded.version, capacity = excluded.capacity,
    active = excluded.active, state = excluded.state, heartbeat_at = excluded.heartbeat_at,
    silent_at = excluded.silent_at, workflows = excluded.workflows, queues = excluded.queues,
    schema_version = excluded.schema_version, clock_ahead = excluded.clock_ahead
RETURNING quiet, last_change;
