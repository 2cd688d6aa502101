-- Records what a line has granted.
UPDATE durable_limit_line
SET rate_used_until = ?, closed_until = ?
WHERE limit_name = ? AND key = ?;
