-- Records a worker's heartbeat, and returns whether an operator wants it to be quiet. Only operators change that; the
-- values given here are for a worker whose row was removed although it lives. The clock is read in the inserted row, not in the update: a distributed
-- database evaluates the inserted row once, where the statement arrives.
INSERT INTO durable.worker AS w (queues, workflows, id, name, version, capacity, active, started_at, heartbeat_at, attended_at, server_started_at, state, silent_at, schema_version, quiet, last_change, clock_ahead)
VALUES ($1::text[], $2::text[], $3::uuid, $4::text, $5::text, $6::integer, $7::integer, $8::timestamptz, clock_timestamp(), $9::timestamptz, $10::timestamptz, $11::smallint, coalesce($12::timestamptz, clock_timestamp()), nullif($13::smallint, 0), $14::boolean, $15::text, $16::bigint)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, version = excluded.version, capacity = excluded.capacity, active = excluded.active,
    started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at, attended_at = excluded.attended_at, server_started_at = excluded.server_started_at,
    state = excluded.state, silent_at = excluded.silent_at, queues = excluded.queues, workflows = excluded.workflows,
    schema_version = excluded.schema_version, clock_ahead = excluded.clock_ahead
RETURNING w.quiet, w.last_change;
