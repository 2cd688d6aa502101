-- Counts the terminal checkpoints of a run, which measure its progress when it is claimed after a crash.
SELECT count(*)
FROM durable_step
WHERE shard = ? AND run_id = ? AND status >= 3;
