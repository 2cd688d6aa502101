-- Selects the keys of a queue that are to be looked at.
SELECT key
FROM durable_queue_key
WHERE queue = ? AND look_at IS NOT NULL AND look_at <= ?
ORDER BY look_at
LIMIT ? + 0;
