-- Deletes a key of a queue that has nothing to count.
DELETE FROM durable_queue_key
WHERE queue = ? AND key = ?;
