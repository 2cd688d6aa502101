-- Lets the place of a run that has begun, and that needs none for its queue, only keep the group key (0), because the queue may get settings
-- again. It changes no place without a group key.
UPDATE durable_place
SET state = 0, start_by = NULL
WHERE shard = ?1 AND run_id = ?2 AND key <> ''
  AND EXISTS (SELECT 1 FROM durable_run AS r WHERE r.shard = ?1 AND r.id = ?2 AND r.lane & 3 = 0);
