-- Selects a key of a queue.
SELECT key, rate_used_until, check_at, turns, in_line_by_priority, executing, open, in_line, in_line_begun, in_line_children, behind
FROM durable_queue_key
WHERE queue = ? AND key = ?;
