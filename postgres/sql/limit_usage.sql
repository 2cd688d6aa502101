-- Returns how many units of each limit key are held (3) by live executions at $1 and offered (2), and how many
-- steps wait (1).
SELECT p.limit_name, p.key,
       coalesce(sum(p.units) FILTER (WHERE p.status = 3 AND r.status = 2 AND r.epoch = p.epoch AND r.wake_at > $1::timestamptz), 0)::bigint,
       coalesce(sum(p.units) FILTER (WHERE p.status = 2 AND p.until_at > $1::timestamptz), 0)::bigint,
       count(*) FILTER (WHERE p.status = 1)
FROM durable.permit AS p
LEFT JOIN durable.run AS r ON r.shard = p.shard AND r.id = p.run_id
GROUP BY p.limit_name, p.key
ORDER BY p.limit_name, p.key;
