-- How far a run got: its terminal checkpoints, counted when it is claimed after a crash.
SELECT count(*)
FROM durable_step
WHERE shard = ? AND run_id = ? AND status >= 3;
