-- Writes the counts of a queue.
UPDATE durable_queue
SET applied = ?, now_at = ?, rate_used_until = ?, closed_until = ?, turns = ?, waiting = ?, executing = ?, open = ?
WHERE name = ?;
