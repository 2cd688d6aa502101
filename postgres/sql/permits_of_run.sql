-- Returns the permits of a run's steps, and for each that waits how many steps of the line are before it.
SELECT p.limit_name, p.key, p.step, p.status, p.epoch, p.attempt, p.units, p.priority, p.missed, p.arrived_at, p.granted_at, p.until_at,
       CASE WHEN p.status = 1 THEN (
           SELECT count(*) FROM durable.permit AS q
           WHERE q.limit_name = p.limit_name AND q.key = p.key AND q.status = 1
             AND (q.priority > p.priority OR q.priority = p.priority AND (q.arrived_at, q.run_id, q.step) < (p.arrived_at, p.run_id, p.step))
       ) ELSE 0 END
FROM durable.permit AS p
WHERE p.shard = $1::smallint AND p.run_id = $2::uuid
ORDER BY p.step;
