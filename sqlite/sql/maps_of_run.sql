-- Selects the Maps (7) of a run.
SELECT run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
FROM durable_step
WHERE shard = ? AND run_id = ? AND kind = 7
ORDER BY name;
