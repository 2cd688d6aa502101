-- Locks limit keys, in the order of limit and key, and creates those that do not exist. The time of a limit key never
-- goes back, even if the clock does. timeline is that of the database when the limit key was last used.
INSERT INTO durable.limit_key AS l (limit_name, key, now_at, timeline)
SELECT item.limit_name, item.key, $3::timestamptz, $4::text
FROM unnest($1::text[], $2::text[]) AS item(limit_name, key)
ORDER BY item.limit_name, item.key
ON CONFLICT (limit_name, key) DO UPDATE SET now_at = greatest(l.now_at, excluded.now_at)
RETURNING l.limit_name, l.key, l.now_at, l.rate_used_until, l.closed_until, l.timeline;
