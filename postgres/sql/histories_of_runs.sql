-- Returns the checkpoints of runs, in the order of the primary key.
SELECT s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch, s.output, s.error, s.started_at, s.ended_at, s.next_at, s.seq, s.failures
FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
JOIN durable.step AS s ON s.shard = item.shard AND s.run_id = item.id
ORDER BY s.shard, s.run_id, s.name;
