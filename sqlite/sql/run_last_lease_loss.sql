-- Selects when a run was last claimed after its lease was lost, and its previous owner.
SELECT lost_at, lost_by
FROM durable_run
WHERE shard = ? AND id = ?;
