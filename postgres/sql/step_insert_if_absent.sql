-- Records steps as step_insert.sql does, with the same text except that the first writer wins: an
-- existing row is left unchanged, and step_not_written_reasons.sql reads it.
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
) AS run
ON CONFLICT (shard, run_id, name) DO NOTHING
RETURNING true;
