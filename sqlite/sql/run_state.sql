-- Selects the columns that fence the writes of a run. It is executed after a write that changed no row.
SELECT status, epoch, control
FROM durable_run
WHERE shard = ? AND id = ?;
