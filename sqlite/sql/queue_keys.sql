-- Selects the keys of a queue with the most waiting runs, and their counts.
SELECT key, executing, open, lined + behind, behind
FROM durable_queue_key
WHERE queue = ? AND key <> ''
ORDER BY lined + behind DESC, executing DESC, open DESC, key
LIMIT ? + 0;
