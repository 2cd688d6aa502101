-- Selects a key of a queue.
SELECT key, paid_at, look_at, turns, levels, executing, open, lined, lined_begun, lined_children, behind
FROM durable_queue_key
WHERE queue = ? AND key = ?;
