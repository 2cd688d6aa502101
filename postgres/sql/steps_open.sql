-- Returns the checkpoints that a run waits for at $3: not terminal (3, 4), sleeps (kind 3) that are not over, or the
-- record (16) of a retry of the run that is not due.
SELECT s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch, s.output, s.error, s.started_at, s.ended_at, s.next_at, s.seq, s.failures
FROM durable.step AS s
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid
  AND (s.status < 3 OR (s.kind IN (3, 16) AND s.next_at > $3::timestamptz))
ORDER BY s.seq, s.name;
