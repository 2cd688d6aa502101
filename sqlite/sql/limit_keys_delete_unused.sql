-- Deletes the unused limit keys after the first given one, up to the second.
DELETE FROM durable_limit_key
WHERE (limit_name, key) > (?, ?) AND (limit_name, key) <= (?, ?) AND now_at < ?
  AND coalesce(rate_used_until <= ?, TRUE) AND coalesce(closed_until <= ?, TRUE)
  AND NOT EXISTS (
    SELECT 1 FROM durable_permit AS p
    WHERE p.limit_name = durable_limit_key.limit_name AND p.key = durable_limit_key.key
  );
