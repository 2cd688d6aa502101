-- Returns the keys of the runs of a queue that were admitted at the second parameter or before, are not claimed yet and were never
-- executed: a row for each run, and at most as many as the third parameter.
SELECT p.key
FROM durable_run AS r
JOIN durable_place AS p ON p.shard = r.shard AND p.run_id = r.id
WHERE r.queue = ? AND r.lane & 7 = 2 AND r.status = 1 AND r.wake_at <= ? AND r.epoch = 0
LIMIT ? + 0;
