-- Selects a checkpoint. An output of more than ?4 bytes is left out; the first column is its size.
SELECT coalesce(length(output), 0), run_id, name, kind, status, attempt, epoch, CASE WHEN length(output) <= ?4 THEN output END, error,
       started_at, ended_at, next_at, seq, failures
FROM durable_step
WHERE shard = ?1 AND run_id = ?2 AND name = ?3;
