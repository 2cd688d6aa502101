-- The signal of a name that has waited longest, of those that arrived in time, if there is one
-- (NULL: there is none): first in, first out.
SELECT id, name, key, payload, created_at
FROM durable_signal
WHERE shard = ?1 AND run_id = ?2 AND name = ?3 AND step IS NULL AND (?4 IS NULL OR arrived_at <= ?4)
ORDER BY created_at, id
LIMIT 1;
