-- Writes the counts of a queue.
UPDATE durable_queue
SET applied = ?, now_at = ?, paid_at = ?, shut_until = ?, turns = ?, waiting = ?, executing = ?, open = ?
WHERE name = ?;
