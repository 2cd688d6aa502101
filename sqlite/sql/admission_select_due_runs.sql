-- Selects runs of a queue that are due without a place, the oldest first.
SELECT r.id, r.lane & 7, r.started_at IS NOT NULL AND r.control & 8 = 0, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id = x'', r.priority,
       p.run_id IS NOT NULL, p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM durable_run AS r
LEFT JOIN durable_place AS p ON p.shard = r.shard AND p.run_id = r.id
WHERE r.queue = ? AND r.lane & 1 = 1 AND r.wake_at IS NOT NULL AND r.wake_at <= ?
ORDER BY r.wake_at
LIMIT ? + 0;
