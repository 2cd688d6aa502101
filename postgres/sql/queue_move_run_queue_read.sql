-- Returns the queue of a run.
SELECT r.queue
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
