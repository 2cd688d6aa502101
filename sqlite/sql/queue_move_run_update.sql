-- Gives a run that has not begun another queue, another priority, or both.
UPDATE durable_run
SET queue = ?, priority = ?, lane = ?, wake_at = ?
WHERE shard = ? AND id = ? AND status = ? AND control = ?;
