-- Notes since when a worker holds its presence lock; NULL: it does not, and its
-- death can only be told from its leases. The row may not be there yet; then the
-- heartbeat that makes it carries the time.
UPDATE durable.worker
SET attended_at = $2::timestamptz
WHERE id = $1::uuid;
