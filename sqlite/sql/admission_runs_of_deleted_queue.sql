-- Selects live runs of a queue that is being deleted, except those with a place to execute, and those that wait for their
-- start keys in the lane ?2.
SELECT r.id, r.lane & 7, r.started_at IS NOT NULL AND r.control & 8 = 0, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id = x'', r.priority,
       p.run_id IS NOT NULL, p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM durable_place AS p
CROSS JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
WHERE p.queue = ?1 AND p.state > 0 AND p.state < 4 AND r.status < 5 AND r.lane & 1 = 1 AND r.lane <> ?2
LIMIT ?3 + 0;
