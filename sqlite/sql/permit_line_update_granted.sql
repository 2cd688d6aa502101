-- Records what a line has granted.
UPDATE durable_limit_line
SET paid_at = ?, shut_until = ?
WHERE limit_name = ? AND key = ?;
