-- Returns the checkpoints of one run with the names $3. An output of more than $4 bytes is left out; the first column is its size.
SELECT coalesce(octet_length(s.output), 0), s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch,
       CASE WHEN octet_length(s.output) <= $4::integer THEN s.output END AS output, s.error, s.started_at, s.ended_at, s.next_at, s.seq, s.failures
FROM durable.step AS s
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.name = ANY ($3::text[]);
