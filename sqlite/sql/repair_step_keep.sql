-- Copies one checkpoint of a superseded generation to the new generation of the run, with its epoch.
INSERT INTO durable_step (shard, run_id, epoch, name, kind, status, attempt, output, error, started_at, ended_at, next_at, seq, failures)
SELECT shard, ?, ?, name, kind, status, attempt, output, error, started_at, ended_at, next_at, seq, failures
FROM durable_step
WHERE shard = ? AND run_id = ? AND name = ?;
