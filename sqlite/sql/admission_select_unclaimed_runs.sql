-- Selects runs of a queue that were admitted at ?3 or before and are not claimed: those whose time is over at ?2, and those that
-- were never executed if some are taken back (?4).
SELECT r.id, r.lane & 7, r.started_at IS NOT NULL AND r.control & 8 = 0, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id = x'', r.priority,
       p.run_id IS NOT NULL, p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM durable_run AS r
LEFT JOIN durable_place AS p ON p.shard = r.shard AND p.run_id = r.id
WHERE r.queue = ?1 AND r.lane & 7 = 2 AND r.status = 1 AND r.wake_at <= ?3
  AND (r.deadline_at <= ?2 OR (r.started_at IS NULL OR r.control & 8 <> 0) AND (?4 OR p.start_by <= ?2))
ORDER BY r.wake_at
LIMIT ?5 + 0;
