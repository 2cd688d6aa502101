-- Locks lines, in the order of limit and key, and creates those that do not exist. The time of a line never
-- goes back, even if the clock does. begun is where the database's history was when the line was last used.
INSERT INTO durable.limit_line AS l (limit_name, key, now_at, begun)
SELECT item.limit_name, item.key, $3::timestamptz, $4::text
FROM unnest($1::text[], $2::text[]) AS item(limit_name, key)
ORDER BY item.limit_name, item.key
ON CONFLICT (limit_name, key) DO UPDATE SET now_at = greatest(l.now_at, excluded.now_at)
RETURNING l.limit_name, l.key, l.now_at, l.paid_at, l.shut_until, l.begun;
