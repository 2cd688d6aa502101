-- step_insert.sql for a step that is complete (3), without an error or a failed attempt, at the first attempt of the write,
-- which any control request blocks. Most steps are like that, and each parameter less saves time.
INSERT OR FAIL INTO durable_step (shard, run_id, epoch, status, name, kind, attempt, started_at, ended_at, output, seq)
SELECT shard, id, epoch, 3,
       ?, -- name
       ?, -- kind
       ?, -- attempt
       ?, -- started_at
       ?, -- ended_at
       CAST(? AS BLOB), -- output
       ? -- seq
FROM durable_run
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND control = 0
ON CONFLICT DO NOTHING;
