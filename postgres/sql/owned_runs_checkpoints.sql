-- Returns what the database has of runs that a process holds: each run's status and epoch, and the names
-- of its terminal checkpoints (3, 4) with the epochs that recorded them. A run without such checkpoints
-- has one row.
SELECT item.ordinal, run.name, run.status, run.epoch, step.name, step.epoch
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
LEFT JOIN LATERAL (
    SELECT r.name, r.status, r.epoch FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS run ON true
LEFT JOIN LATERAL (
    SELECT s.name, s.epoch FROM durable.step AS s
    WHERE s.shard = item.shard AND s.run_id = item.id AND s.status >= 3
    OFFSET 0
) AS step ON true;
