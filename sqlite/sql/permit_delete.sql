-- Removes a permit.
DELETE FROM durable_permit
WHERE shard = ? AND run_id = ? AND step = ? AND limit_name = ? AND key = ?;
