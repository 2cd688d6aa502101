-- Gives a run that has not begun (epoch 0) another queue, another priority, or both.
UPDATE durable_run
SET queue = ?, priority = ?, lane = ?, wake_at = ?
WHERE shard = ? AND id = ? AND epoch = 0 AND status = ? AND control = ?;
