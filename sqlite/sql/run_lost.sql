-- When a run was last claimed after its lease had ended, and who had had it.
SELECT lost_at, lost_by
FROM durable_run
WHERE shard = ? AND id = ?;
