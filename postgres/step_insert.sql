-- Records steps that have no row yet. First writer wins: a row that is there is left
-- alone, and step_state.sql reads it.
--
-- The fence is the lateral join: no row comes out of a run that is not running (2)
-- at the writer's epoch. What was asked of the run (control) fences only a first try (not
-- anyway), so that the writer hears of it. It takes no lock, see DESIGN section 5. OFFSET 0 keeps it
-- a probe per item; flattened into a join it was once planned as a scan of all runs.
INSERT INTO durable.step (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at
)
SELECT
    item.shard, item.run_id, item.name, item.kind, item.status, item.attempt, item.epoch,
    item.output, item.error, item.started_at, item.ended_at, item.next_at
FROM unnest(
    $1::smallint[], $2::uuid[], $3::text[], $4::smallint[], $5::smallint[], $6::integer[], $7::integer[],
    $8::bytea[], $9::bytea[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::boolean[]
) AS item(
    shard, run_id, name, kind, status, attempt, epoch,
    output, error, started_at, ended_at, next_at, anyway
)
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.run_id AND r.epoch = item.epoch AND r.status = 2
      AND (r.control = 0 OR item.anyway)
    OFFSET 0
) AS fence
ON CONFLICT (shard, run_id, name) DO NOTHING;
