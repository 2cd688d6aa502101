-- Returns a locked run and its place. The columns of the place are NULL if it has none.
SELECT r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority,
       p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by,
       r.queue, r.workflow, r.epoch, r.lane, r.priority, r.version
FROM durable.run AS r
LEFT JOIN durable.place AS p ON p.shard = r.shard AND p.run_id = r.id
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
