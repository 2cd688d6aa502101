-- Reads what stood in the way of step writes: the run's epoch, status and control, and the
-- step's row, either of which may be missing. It runs after the write, as a statement
-- of its own, because the write's snapshot cannot see what got in between.
SELECT item.ordinal, run.status, run.epoch, run.control,
       step.kind, step.status, step.attempt, step.epoch, step.output, step.error,
       step.started_at, step.ended_at, step.next_at
FROM unnest($1::smallint[], $2::uuid[], $3::text[]) WITH ORDINALITY AS item(shard, run_id, name, ordinal)
LEFT JOIN LATERAL (
    SELECT r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.run_id
    OFFSET 0
) AS run ON true
LEFT JOIN LATERAL (
    SELECT s.* FROM durable.step AS s
    WHERE s.shard = item.shard AND s.run_id = item.run_id AND s.name = item.name
    OFFSET 0
) AS step ON true;
