-- Selects the hash of the input with which a run was started, or NULL if the run has not continued as new.
SELECT first_input
FROM durable_run
WHERE shard = ? AND id = ?;
