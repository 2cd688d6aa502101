-- Records what locked limit keys have granted.
UPDATE durable.limit_key AS l
SET rate_used_until = item.rate_used_until, closed_until = item.closed_until, timeline = $5::text
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS item(limit_name, key, rate_used_until, closed_until)
WHERE l.limit_name = item.limit_name AND l.key = item.key;
