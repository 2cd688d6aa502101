-- Removes the permit, or the place in a line, that an attempt of an execution gives back.
DELETE FROM durable_permit
WHERE shard = ? AND run_id = ? AND step = ? AND epoch = ? AND attempt = ? AND limit_name = ? AND key = ?;
