-- Creates a schedule.
INSERT INTO durable_schedule (shard, name, state, next_at, waiting_at, last_run, paused, cancels, fires)
VALUES (?, -- shard
        ?, -- name
        CAST(? AS BLOB), -- state
        ?, -- next_at
        ?, -- waiting_at
        ?, -- last_run
        ?, -- paused
        ?, -- cancels
        ?); -- fires
