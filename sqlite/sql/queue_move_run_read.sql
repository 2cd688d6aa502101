-- Selects a run and its place. The columns of the place are NULL if it has none.
SELECT r.id, r.lane & 7, r.started_at IS NOT NULL AND r.control & 8 = 0, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id = x'', r.priority,
       p.run_id IS NOT NULL, p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by,
       r.queue, r.workflow, r.epoch, r.lane, r.priority, r.version
FROM durable_run AS r
LEFT JOIN durable_place AS p ON p.shard = r.shard AND p.run_id = r.id
WHERE r.shard = ? AND r.id = ?;
