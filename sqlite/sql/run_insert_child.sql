-- Inserts a child. The parent's row is the fence: no row is inserted if the parent is no longer running (2) at the writer's
-- epoch, or if it has a control request, so that no child escapes a pause or a cancel. A run with this ID, or with this
-- name and this parent, stays as it is. OR FAIL as in step_insert.sql.
INSERT OR FAIL INTO durable_run (shard, parent_id, id, name, workflow, version, queue, priority, lane, status, epoch, owner,
                         input, trace, detached, created_at, started_at, wake_at, deadline_at, timeout)
SELECT shard, id,
       ?, -- id
       ?, -- name
       ?, -- workflow
       ?, -- version
       ?, -- queue
       ?, -- priority
       ?, -- lane
       ?, -- status
       ?, -- epoch
       ?, -- owner
       CAST(? AS BLOB), -- input
       ?, -- trace
       ?, -- detached
       ?, -- created_at
       ?, -- started_at
       ?, -- wake_at
       ?, -- deadline_at
       nullif(?, 0) -- timeout
FROM durable_run
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND control = 0
ON CONFLICT DO NOTHING;
