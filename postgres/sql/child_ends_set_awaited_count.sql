-- Sets how many ends of the children of a call must be counted before one of them wakes the run, if the run is running (2) at the
-- epoch $3. Returns how many are counted. Both this statement and child_ends_count_and_wake_parents.sql update the row of the call, so either
-- the end sees what is awaited, or this statement returns a count that includes it.
UPDATE durable.step AS s
SET child_ends_awaited = $5::integer
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.name = $4::text
  AND EXISTS (
      SELECT FROM durable.run AS r
      WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
  )
RETURNING coalesce(s.child_ends, 0);
