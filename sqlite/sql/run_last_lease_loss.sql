-- Selects when a run was last claimed after its lease was lost, its previous owner, and its timeout.
SELECT lost_at, lost_by, coalesce(timeout, 0)
FROM durable_run
WHERE shard = ? AND id = ?;
