-- The signal of a name that has waited longest: first in, first out.
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ? AND run_id = ? AND name = ? AND step IS NULL
ORDER BY created_at, id
LIMIT 1;
