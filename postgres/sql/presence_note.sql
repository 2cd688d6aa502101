-- Notes since when a worker holds its presence lock, and when the server started that keeps
-- it; NULL: it holds none, and its death can only be told from its leases. The row may not be there yet; then the
-- heartbeat that makes it carries the time.
UPDATE durable.worker
SET attended_at = $2::timestamptz, server_started_at = $3::timestamptz
WHERE id = $1::uuid;
