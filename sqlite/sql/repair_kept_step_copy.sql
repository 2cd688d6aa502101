-- Copies one checkpoint ?5 of a superseded generation ?4 to the new generation ?1 of the run, with its epoch ?2. If it follows the first
-- change ?6, it loses the lowest bit of seq, because the code need not make the call any more. If ?6 is zero, there is no change.
INSERT INTO durable_step (shard, run_id, epoch, name, kind, status, attempt, output, error, started_at, ended_at, next_at, seq, failures)
SELECT shard, ?1, ?2, name, kind, status, attempt, output, error, started_at, ended_at, next_at,
       CASE WHEN seq > ?6 AND ?6 > 0 THEN seq & -2 ELSE seq END, failures
FROM durable_step
WHERE shard = ?3 AND run_id = ?4 AND name = ?5;
