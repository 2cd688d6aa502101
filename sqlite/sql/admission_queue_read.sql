-- Selects the row of a queue for an admission.
SELECT coalesce(chosen, declared), applied, now_at, rate_used_until, closed_until, paused_at, deleted, turns, waiting, executing, open
FROM durable_queue
WHERE name = ?;
