-- Copies the checkpoints $5 of the superseded generation $3 to the new generation of the run, with its epoch $4. Those that follow its
-- first change $6 lose the lowest bit of seq, because the code need not make these calls any more. If $6 is zero, there is no change.
INSERT INTO durable.step (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
)
SELECT s.shard, $2::uuid, s.name, s.kind, s.status, s.attempt, $4::bigint, s.output, s.error, s.started_at, s.ended_at, s.next_at,
       CASE WHEN s.seq > $6::integer AND $6::integer > 0 THEN s.seq & -2 ELSE s.seq END, s.failures
FROM durable.step AS s
WHERE s.shard = $1::smallint AND s.run_id = $3::uuid AND s.name = ANY ($5::text[]);
