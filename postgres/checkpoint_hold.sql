-- Takes the lock of checkpoint.sql's fence at the beginning of a transaction. No row: the
-- run is not the writer's any more, which checkpoint.sql will find.
SELECT FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
FOR SHARE;
