-- step_insert.sql for a step that is complete (3) at once, without an error or a failed attempt, and for the
-- first try, which anything asked of the run keeps out: most steps are so, and a placeholder less is time.
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
