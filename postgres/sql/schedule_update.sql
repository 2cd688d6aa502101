-- Writes a schedule that this transaction has locked.
UPDATE durable.schedule AS s
SET state = $3::bytea, next_at = $4::timestamptz, waiting_at = $5::timestamptz, last_shard = $6::smallint, last_run = $7::uuid,
    paused = $8::boolean, cancels = $9::boolean, fires = $10::integer
WHERE s.shard = $1::smallint AND s.name = $2::text
RETURNING s.name;
