-- What each live worker executes that takes new runs: a JSON array of [queue, workflow], or NULL where the list is not
-- kept.
SELECT executes
FROM durable_worker
WHERE state = 1 AND silent_at > ?;
