-- Selects the permits of a limit key that are held (3) or offered (2), with the states of their runs.
SELECT p.limit_name, p.key, p.run_id, p.step, p.status, p.epoch, p.attempt, p.units, p.priority, p.missed, p.arrived_at, p.granted_at, p.until_at,
       r.status, r.epoch, r.control, r.wake_at
FROM durable_permit AS p
LEFT JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
WHERE p.limit_name = ? AND p.key = ? AND p.status >= 2;
