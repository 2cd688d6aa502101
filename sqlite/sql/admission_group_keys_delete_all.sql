-- Deletes the keys of a queue that was deleted.
DELETE FROM durable_queue_key
WHERE queue = ?;
