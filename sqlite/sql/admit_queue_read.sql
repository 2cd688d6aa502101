-- Selects the row of a queue for an admission.
SELECT coalesce(chosen, declared), applied, now_at, paid_at, shut_until, paused_at, deleted, turns, waiting, executing, open
FROM durable_queue
WHERE name = ?;
