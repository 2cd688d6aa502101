-- Reads the row of the key under which a run waits to be released. The run does not tell the shard of the key.
SELECT f.workflow, f.key, f.kind, f.check_at, f.after_id, f.waiting_id, f.state, f.input
FROM durable.fold AS f
WHERE f.waiting_id = $1::uuid;
