-- Records what locked lines have granted.
UPDATE durable.limit_line AS l
SET paid_at = item.paid_at, shut_until = item.shut_until, begun = $5::text
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS item(limit_name, key, paid_at, shut_until)
WHERE l.limit_name = item.limit_name AND l.key = item.key;
