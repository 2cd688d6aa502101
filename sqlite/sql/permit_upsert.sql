-- Writes a permit. The row of a step is replaced, also if it stood in another line.
INSERT INTO durable_permit (
    shard, run_id, step, limit_name, key, status, epoch, attempt, units, priority, missed, arrived_at, granted_at, until_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (shard, run_id, step) DO UPDATE
SET limit_name = excluded.limit_name, key = excluded.key, status = excluded.status, epoch = excluded.epoch, attempt = excluded.attempt,
    units = excluded.units, priority = excluded.priority, missed = excluded.missed,
    arrived_at = excluded.arrived_at, granted_at = excluded.granted_at, until_at = excluded.until_at;
