-- Locks the row of a queue for an admission. It returns nothing if another transaction has locked it, or if there is none.
SELECT coalesce(q.chosen, q.declared), q.applied, q.now_at, q.rate_used_until, q.closed_until, q.paused_at, q.deleted, q.timeline, q.turns, q.waiting, q.executing, q.open
FROM durable.queue AS q
WHERE q.name = $1::text
FOR UPDATE SKIP LOCKED;
