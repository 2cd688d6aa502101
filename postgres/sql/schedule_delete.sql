-- Deletes a schedule that this transaction has locked.
DELETE FROM durable.schedule AS s
WHERE s.shard = $1::smallint AND s.name = $2::text
RETURNING s.name;
