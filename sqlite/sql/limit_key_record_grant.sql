-- Records what a limit key has granted.
UPDATE durable_limit_key
SET rate_used_until = ?, closed_until = ?
WHERE limit_name = ? AND key = ?;
