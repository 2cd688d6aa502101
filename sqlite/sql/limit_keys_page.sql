-- Selects some limit keys after the given one.
SELECT limit_name, key
FROM durable_limit_key
WHERE (limit_name, key) > (?, ?)
ORDER BY limit_name, key
LIMIT ?;
