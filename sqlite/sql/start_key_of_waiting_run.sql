-- Reads the row of the key under which a run waits to be released.
SELECT workflow, key, kind, check_at, after_id, waiting_id, state, input
FROM durable_fold
WHERE waiting_id = ?;
