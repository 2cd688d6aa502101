-- Records since when a worker holds its presence lock, and when the server that keeps it started. NULL
-- means that the worker holds no lock, so that its death shows only when its leases end. If the row does
-- not exist yet, the heartbeat that inserts it sets these times.
UPDATE durable.worker
SET attended_at = $2::timestamptz, server_started_at = $3::timestamptz
WHERE id = $1::uuid;
