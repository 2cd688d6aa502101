-- Selects the first limit key after the given one for which a step waits (1).
SELECT limit_name, key
FROM durable_permit
WHERE status = 1 AND (limit_name, key) > (?, ?)
ORDER BY limit_name, key
LIMIT 1;
