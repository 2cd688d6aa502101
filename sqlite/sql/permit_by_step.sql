-- Selects the permit of a step.
SELECT limit_name, key, run_id, step, status, epoch, attempt, units, priority, missed, arrived_at, granted_at, until_at
FROM durable_permit
WHERE shard = ? AND run_id = ? AND step = ?;
