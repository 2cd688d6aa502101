-- Selects how many units of each limit key are held (3) by live executions and offered (2), and how many steps wait (1).
SELECT p.limit_name, p.key,
       coalesce(sum(CASE WHEN p.status = 3 AND r.status = 2 AND r.epoch = p.epoch AND r.wake_at > ?1 THEN p.units END), 0),
       coalesce(sum(CASE WHEN p.status = 2 AND p.until_at > ?1 THEN p.units END), 0),
       coalesce(sum(p.status = 1), 0)
FROM durable_permit AS p
LEFT JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
GROUP BY p.limit_name, p.key
ORDER BY p.limit_name, p.key;
