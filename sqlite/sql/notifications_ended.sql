-- Whether a run was ended as cancelled (7) under this epoch.
SELECT 1
FROM durable_run
WHERE shard = ? AND id = ? AND epoch = ? AND status = 7;
