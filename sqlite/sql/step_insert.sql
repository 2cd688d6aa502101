-- Records a step that has no row yet. The fence is the run's own row: the shard,
-- the run and the epoch are copied from it, so that no row comes out when the
-- run is no longer running (2) at the writer's epoch. First writer wins.
-- The last placeholder says which bits of what was asked of the run (control) keep the
-- write out: all at the first try, none once the writer is told of them.
-- Placeholders are anonymous because naming them costs the driver one lookup each.
-- CAST: the driver binds an empty blob as NULL, so empty ones come as text.
-- OR FAIL: an insert of one row leaves nothing behind when it fails, and so SQLite keeps no journal of the
-- statement, as it does for any INSERT ... SELECT that may abort.
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
