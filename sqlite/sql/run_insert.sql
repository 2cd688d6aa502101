-- Inserts a root run, unless a run with this ID or this name exists.
INSERT INTO durable_run (shard, id, parent_id, name, workflow, version, queue, priority, lane, status, epoch, owner,
                         input, trace, detached, created_at, started_at, wake_at, deadline_at, timeout)
VALUES (?, -- shard
        ?, -- id
        x'', -- parent_id: an empty blob for a root
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
        nullif(?, 0)) -- timeout
ON CONFLICT DO NOTHING;
