-- Reads the row of one key under which starts fold.
SELECT check_at, after_id, waiting_id, state, input
FROM durable_fold
WHERE workflow = ? AND key = ? AND kind = ?;
