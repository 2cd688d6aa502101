-- Deletes the row of one key under which starts fold.
DELETE FROM durable_fold
WHERE workflow = ? AND key = ? AND kind = ?;
