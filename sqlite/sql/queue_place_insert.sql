-- Inserts the place of a run that the same transaction has created.
INSERT INTO durable_place (shard, run_id, queue, key, weight, priority, root, state, start_by)
VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?);
