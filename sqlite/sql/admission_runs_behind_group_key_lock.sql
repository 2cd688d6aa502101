-- Selects the first runs of a part of those behind a key.
SELECT r.id, r.lane & 7, r.started_at IS NOT NULL AND r.control & 8 = 0, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id = x'', r.priority,
       p.run_id IS NOT NULL, p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM durable_place AS p
CROSS JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
WHERE p.queue = ?1 AND p.key = ?2 AND p.state = 3 AND p.begun = ?3 AND p.root = ?4
  AND r.status = 1 AND r.lane & 3 = 3 AND (r.wake_at IS NULL OR r.wake_at > ?5)
ORDER BY p.priority DESC, p.arrived_at, p.run_id
LIMIT ?6 + 0;
