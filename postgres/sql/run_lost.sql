-- When a run was last claimed after its lease had ended, and who had had it.
SELECT r.lost_at, r.lost_by
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
