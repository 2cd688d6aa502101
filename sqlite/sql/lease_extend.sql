-- Extends one lease, if it is still held.
UPDATE durable_run
SET wake_at = ?
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND owner = ?;
