-- Inserts checkpoints that the new generation of a run has, and the superseded one has not.
INSERT INTO durable.step (
    shard, run_id, epoch, name, kind, status, attempt, output, error, started_at, ended_at, next_at, seq, failures
)
SELECT $1::smallint, $2::uuid, $3::bigint, item.name, item.kind, item.status, item.attempt, item.output, item.error,
       item.started_at, item.ended_at, item.next_at, item.seq, item.failures
FROM unnest(
    $4::text[], $5::smallint[], $6::smallint[], $7::integer[], $8::bytea[], $9::bytea[],
    $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::integer[], $14::bytea[]
) AS item(name, kind, status, attempt, output, error, started_at, ended_at, next_at, seq, failures);
