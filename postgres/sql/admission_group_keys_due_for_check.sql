-- Returns keys of a queue that are to be looked at.
SELECT k.key
FROM durable.queue_key AS k
WHERE k.queue = $1::text AND k.check_at <= $2::timestamptz
ORDER BY k.check_at
LIMIT $3::integer;
