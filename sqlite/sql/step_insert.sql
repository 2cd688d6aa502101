-- Inserts a step. The run's row is the fence: the shard, the run and the epoch are copied from it, so that no row is inserted
-- if the run is no longer running (2) at the writer's epoch. The first writer wins.
-- The last parameter holds the control bits that block the write: all at the first attempt, none once the writer has been
-- told of the control request.
-- The parameters are anonymous, because the driver looks up each named one.
-- CAST: the driver binds an empty blob as NULL, so an empty blob comes as an empty text.
-- OR FAIL: an insert of one row leaves nothing behind when it fails. With OR FAIL SQLite keeps no statement journal, which it
-- keeps for any other INSERT ... SELECT that may abort.
INSERT OR FAIL INTO durable_step (shard, run_id, epoch, name, kind, status, attempt, started_at, ended_at, next_at, output, error, seq, failures)
SELECT shard, id, epoch,
       ?, -- name
       ?, -- kind
       ?, -- status
       ?, -- attempt
       ?, -- started_at
       ?, -- ended_at
       ?, -- next_at
       CAST(? AS BLOB), -- output
       CAST(? AS BLOB), -- error
       ?, -- seq
       CAST(? AS BLOB)  -- failures
FROM durable_run
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND (control & ?) = 0
ON CONFLICT DO NOTHING;
