-- Selects what each live worker that takes new runs executes: a JSON array of [queue, workflow], or NULL if the worker does not
-- record it.
SELECT executes
FROM durable_worker
WHERE state = 1 AND silent_at > ?;
