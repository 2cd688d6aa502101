-- Deletes unused lines after one line and up to another one.
DELETE FROM durable_limit_line
WHERE (limit_name, key) > (?, ?) AND (limit_name, key) <= (?, ?) AND now_at < ?
  AND coalesce(rate_used_until <= ?, TRUE) AND coalesce(closed_until <= ?, TRUE)
  AND NOT EXISTS (
    SELECT 1 FROM durable_permit AS p
    WHERE p.limit_name = durable_limit_line.limit_name AND p.key = durable_limit_line.key
  );
