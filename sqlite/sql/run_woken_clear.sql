-- Clears the mark of a woken run, and returns the run's deadline for its worker.
UPDATE durable_run
SET woken = 0
WHERE shard = ? AND id = ? AND epoch = ? AND owner = ? AND status = 2 AND woken = 1
RETURNING deadline_at;
