-- Deletes the place of a run that needs none for its queue, or that waits for its key in the lane ?3; see store.UnreleasedLane.
DELETE FROM durable_place
WHERE shard = ?1 AND run_id = ?2
  AND EXISTS (SELECT 1 FROM durable_run AS r WHERE r.shard = ?1 AND r.id = ?2 AND (r.lane & 3 = 0 OR r.lane = ?3));
