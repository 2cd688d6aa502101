-- Selects the oldest waiting signal of a name that arrived by the given time (NULL: any time).
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ?1 AND run_id = ?2 AND name = ?3 AND step IS NULL AND (?4 IS NULL OR arrived_at <= ?4)
ORDER BY created_at, id
LIMIT 1;
