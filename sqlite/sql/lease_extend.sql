-- Extends a lease, if the worker still holds it.
UPDATE durable_run
SET wake_at = ?
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND owner = ?;
