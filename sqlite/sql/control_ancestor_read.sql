-- Selects an ancestor of a controlled run, with the columns of control_run_tree_read.sql. An ancestor is only woken or read.
SELECT id, parent_id, status, epoch, control, owner, detached, paused_at
FROM durable_run
WHERE shard = ? AND id = ?;
