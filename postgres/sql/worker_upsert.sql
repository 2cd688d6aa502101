-- A worker's heartbeat. The clock is read in the inserted row, not in the update:
-- a distributed database evaluates that once, where the statement arrives.
INSERT INTO durable.worker AS w (id, name, version, capacity, active, started_at, heartbeat_at, attended_at, server_started_at, state)
VALUES ($1::uuid, $2::text, $3::text, $4::integer, $5::integer, $6::timestamptz, clock_timestamp(), $7::timestamptz, $8::timestamptz, $9::smallint)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, version = excluded.version, capacity = excluded.capacity, active = excluded.active,
    started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at, attended_at = excluded.attended_at, server_started_at = excluded.server_started_at,
    state = excluded.state
RETURNING w.heartbeat_at;
