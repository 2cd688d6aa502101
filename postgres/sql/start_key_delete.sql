-- Deletes the row of one key, which this transaction has locked.
DELETE FROM durable.fold AS f
WHERE f.shard = $1::smallint AND f.workflow = $2::text AND f.key = $3::text AND f.kind = $4::smallint
RETURNING f.kind;
