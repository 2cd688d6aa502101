-- Copies the checkpoints $5 of the superseded generation $3 to the new generation of the run, with its epoch $4. Those that follow its
-- first change $6 lose the lowest bit of seq, because the code need not make these calls any more. If $6 is zero, there is no change.
--
-- OFFSET 0 keeps the join an index probe for each name. Without it, and with "= ANY", the statement once compared each checkpoint with each
-- name, because the planner expected one checkpoint.
INSERT INTO durable.step (
    shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq, failures
)
SELECT s.shard, $2::uuid, s.name, s.kind, s.status, s.attempt, $4::bigint, s.output, s.error, s.started_at, s.ended_at, s.next_at,
       CASE WHEN s.seq > $6::integer AND $6::integer > 0 THEN s.seq & -2 ELSE s.seq END, s.failures
FROM unnest($5::text[]) AS kept(name)
CROSS JOIN LATERAL (
    SELECT p.*
    FROM durable.step AS p
    WHERE p.shard = $1::smallint AND p.run_id = $3::uuid AND p.name = kept.name
    OFFSET 0
) AS s;
