-- Selects the keys of a queue that are to be looked at.
SELECT key
FROM durable_queue_key
WHERE queue = ? AND check_at IS NOT NULL AND check_at <= ?
ORDER BY check_at
LIMIT ? + 0;
