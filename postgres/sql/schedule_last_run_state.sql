-- Reads the state of the last run of a schedule.
SELECT r.status, r.control
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
