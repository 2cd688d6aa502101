-- Returns the checkpoints of one run without payloads. Only choices (kind 4), Maps (7), renewals (16) and graphs (17) have their output,
-- from which the states of other checkpoints follow.
SELECT s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch, CASE WHEN s.kind IN (4, 7, 16, 17) THEN s.output END AS output, NULL::bytea AS error,
       s.started_at, s.ended_at, s.next_at, s.seq, NULL::bytea AS failures
FROM durable.step AS s
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid;
