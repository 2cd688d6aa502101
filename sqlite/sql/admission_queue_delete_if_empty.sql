-- Deletes the row of a queue that is marked as deleted, if no run waits for a place in it or has one. Runs that wait for their
-- start keys in the lane ?2 keep their places; see store.UnreleasedLane.
DELETE FROM durable_queue
WHERE name = ?1 AND deleted = 1
  AND NOT EXISTS (SELECT 1
                  FROM durable_place AS p
                  CROSS JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
                  WHERE p.queue = ?1 AND p.state > 0 AND r.lane & 3 > 0 AND r.lane <> ?2);
