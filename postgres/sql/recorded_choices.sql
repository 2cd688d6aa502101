-- Returns the choices (kind 4) that a run has recorded.
SELECT s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch, s.output, s.error, s.started_at, s.ended_at, s.next_at, s.seq, s.failures
FROM durable.step AS s
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.kind = 4 AND s.status = 3
ORDER BY s.name;
