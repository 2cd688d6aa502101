-- Selects some lines after the given one.
SELECT limit_name, key
FROM durable_limit_line
WHERE (limit_name, key) > (?, ?)
ORDER BY limit_name, key
LIMIT ?;
