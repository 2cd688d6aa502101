-- Returns when a run was last claimed after its lease had ended, and which worker had that lease.
SELECT r.lost_at, r.lost_by
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
