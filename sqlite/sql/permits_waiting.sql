-- Selects the first permits of a limit key that wait (1) and have, or have not, missed an offer, in order, with the states of their runs.
SELECT p.limit_name, p.key, p.run_id, p.step, p.status, p.epoch, p.attempt, p.units, p.priority, p.missed, p.arrived_at, p.granted_at, p.until_at,
       r.status, r.epoch, r.control, r.wake_at
FROM durable_permit AS p
LEFT JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
WHERE p.limit_name = ? AND p.key = ? AND p.status = 1 AND p.missed = ?
ORDER BY p.priority DESC, p.arrived_at, p.run_id, p.step
LIMIT ? + 0;
