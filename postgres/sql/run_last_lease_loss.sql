-- Returns when a run was last claimed after its lease had ended, which worker had that lease, and the timeout of the run.
SELECT r.lost_at, r.lost_by, coalesce(r.timeout, 0)
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
