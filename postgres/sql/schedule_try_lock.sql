-- Locks one schedule and reads it, unless another transaction has locked it.
SELECT s.name, s.state, s.next_at, s.waiting_at, s.last_run, s.paused, s.cancels, s.fires
FROM durable.schedule AS s
WHERE s.shard = $1::smallint AND s.name = $2::text
FOR NO KEY UPDATE SKIP LOCKED;
