-- Inserts a checkpoint that the new generation of a run has, and the superseded one has not.
INSERT INTO durable_step (shard, run_id, epoch, name, kind, status, attempt, output, error, started_at, ended_at, next_at, seq, failures)
VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS BLOB), CAST(? AS BLOB), ?, ?, ?, ?, CAST(? AS BLOB));
