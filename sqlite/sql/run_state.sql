-- What fences the writes of a run, read back when one did not take.
SELECT status, epoch, control
FROM durable_run
WHERE shard = ? AND id = ?;
