-- What the database has of runs that a process holds: the ownership, and the names of the
-- checkpoints that have their outcome (3, 4), with who recorded each. A run that has none has one row.
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
