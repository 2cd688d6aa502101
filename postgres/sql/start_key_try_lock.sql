-- Locks the row of one key under which starts fold, and reads it, unless another transaction has locked it.
SELECT f.check_at, f.after_id, f.waiting_id, f.state, f.input
FROM durable.fold AS f
WHERE f.shard = $1::smallint AND f.workflow = $2::text AND f.key = $3::text AND f.kind = $4::smallint
FOR NO KEY UPDATE SKIP LOCKED;
