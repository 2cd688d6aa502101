-- Records steps that have no row yet, and fails if one has: then step_insert_again.sql records
-- the others. A step has a row before it is written for the first time only after an answer was lost, or
-- where two processes execute one run. To look for such a row each time costs a seventh of the statement.
--
-- The fence is the lateral join: no row comes out of a run that is not running (2)
-- at the writer's epoch. What was asked of the run (control) fences only a first try (not
-- anyway), so that the writer hears of it. It takes no lock: a process that lost
-- the run can so write for the flight time of one statement, which a takeover waits for. OFFSET 0 keeps it
-- a probe per item; flattened into a join it was once planned as a scan of all runs.
--
-- Columns of a fixed width are read out of their arrays at place i, which is one look; only
-- texts are unnested, since each array that is costs a store of its rows. See docs/decisions.md.
INSERT INTO durable.step (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
)
SELECT
    run.shard, run.id, item.name, ($4::smallint[])[i], ($5::smallint[])[i], ($6::integer[])[i], ($7::bigint[])[i],
    item.output, ($9::bytea[])[i], ($10::timestamptz[])[i], ($11::timestamptz[])[i], ($12::timestamptz[])[i],
    ($14::integer[])[i], ($15::bytea[])[i]
FROM unnest($3::text[], $8::bytea[]) WITH ORDINALITY AS item(name, output, i)
CROSS JOIN LATERAL (
    SELECT r.shard, r.id
    FROM durable.run AS r
    WHERE r.shard = ($1::smallint[])[i] AND r.id = ($2::uuid[])[i] AND r.epoch = ($7::bigint[])[i] AND r.status = 2
      AND (r.control = 0 OR ($13::boolean[])[i])
    OFFSET 0
) AS run;
