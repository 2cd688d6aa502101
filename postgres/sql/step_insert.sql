-- Records steps that have no row yet, and fails if one of them has a row; then step_insert_if_absent.sql
-- records the others. A step has a row before its first write only if the result of that write was lost,
-- or if two processes execute the run. Checking for such a row each time would cost a seventh of the
-- statement.
--
-- The lateral join is the fence: it returns no row for a run that is not running (2) at the writer's
-- epoch. A request to pause or cancel the run (control) fences only a first try (anyway is false), so
-- that the writer learns of it. The fence takes no lock: a process that lost the run can still write for
-- the duration of one statement, for which a takeover waits. OFFSET 0 keeps the join an index probe per
-- item; without it, the join was once planned as a scan of all runs.
--
-- Columns of a fixed width are read from their arrays by the subscript i, which takes constant time. Only
-- texts and payloads are unnested, because each unnested array costs a copy of its rows. See
-- docs/decisions.md.
INSERT INTO durable.step (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
)
SELECT
    run.shard, run.id, item.name, ($4::smallint[])[i], ($5::smallint[])[i], ($6::integer[])[i], run.epoch,
    item.output, ($9::bytea[])[i], ($10::timestamptz[])[i], ($11::timestamptz[])[i], ($12::timestamptz[])[i],
    ($14::integer[])[i], ($15::bytea[])[i]
FROM unnest($3::text[], $8::bytea[]) WITH ORDINALITY AS item(name, output, i)
CROSS JOIN LATERAL (
    SELECT r.shard, r.id, r.epoch
    FROM durable.run AS r
    WHERE r.shard = ($1::smallint[])[i] AND r.id = ($2::uuid[])[i] AND r.epoch = ($7::bigint[])[i] AND r.status = 2
      AND (r.control = 0 OR ($13::boolean[])[i])
    OFFSET 0
) AS run;
