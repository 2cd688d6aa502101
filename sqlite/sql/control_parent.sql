-- A run above an ordered one, as control_tree.sql answers it. What it has done does not
-- matter: it is only woken, or looked at.
SELECT id, parent_id, status, epoch, control, owner, detached, paused_at
FROM durable_run
WHERE shard = ? AND id = ?;
