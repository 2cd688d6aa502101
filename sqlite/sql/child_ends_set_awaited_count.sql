-- Sets how many ends of the children of a call must be counted before one of them wakes the run, if the run is running (2) at the
-- epoch. Returns how many are counted.
UPDATE durable_step
SET child_ends_awaited = ?1
WHERE run_id = ?2 AND name = ?3
  AND EXISTS (SELECT 1 FROM durable_run AS r WHERE r.shard = ?4 AND r.id = ?2 AND r.epoch = ?5 AND r.status = 2)
RETURNING coalesce(child_ends, 0);
