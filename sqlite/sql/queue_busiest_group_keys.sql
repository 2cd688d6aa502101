-- Selects the keys of a queue with the most waiting runs, and their counts.
SELECT key, executing, open, in_line + behind, behind
FROM durable_queue_key
WHERE queue = ? AND key <> ''
ORDER BY in_line + behind DESC, executing DESC, open DESC, key
LIMIT ? + 0;
