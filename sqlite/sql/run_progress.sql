-- Returns the progress of a run that is claimed after a crash: the number of its terminal checkpoints and of its children (6), together. So the
-- start of a child counts, and so does its recorded end.
SELECT count(*) FILTER (WHERE status >= 3) + count(*) FILTER (WHERE kind = 6)
FROM durable_step
WHERE shard = ? AND run_id = ?;
