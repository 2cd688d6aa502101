-- Selects the checkpoints of a run from a name on, in the order of the primary key.
SELECT run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
FROM durable_step
WHERE shard = ? AND run_id = ? AND name >= ?
ORDER BY name;
