-- Selects when the next run of a queue is due without a place, or a key is to be looked at.
SELECT min(at)
FROM (
    SELECT (SELECT min(wake_at) FROM durable_run WHERE queue = ?1 AND lane & 1 = 1 AND wake_at IS NOT NULL AND wake_at > ?2) AS at
    UNION ALL
    SELECT (SELECT min(check_at) FROM durable_queue_key WHERE queue = ?1 AND check_at IS NOT NULL AND check_at > ?2)
) AS next;
