-- Selects the open steps of a run: those that are not terminal, sleeps (3) that are not over, and the record (16) of a retry
-- of the run that is not due. The rows are in the order of the index; the caller sorts them by seq.
SELECT run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
FROM durable_step
WHERE shard = ? AND run_id = ? AND (status < 3 OR kind IN (3, 16) AND next_at > ?)
ORDER BY name;
