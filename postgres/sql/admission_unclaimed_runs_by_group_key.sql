-- Returns the keys of the runs of a queue that were admitted at $2 or before, are not claimed yet and were never executed: a row for
-- each run, and at most $3.
SELECT p.key
FROM durable.run AS r
JOIN durable.place AS p ON p.shard = r.shard AND p.run_id = r.id
WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 3 AND r.wake_at <= $2::timestamptz
  AND r.epoch = 0
LIMIT $3::integer;
