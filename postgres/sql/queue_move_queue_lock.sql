-- Locks the row of the queue in which a run is. It waits for an admission, and returns nothing if there is no row. The
-- columns are those of admission_queue_lock.sql.
SELECT coalesce(q.chosen, q.declared), q.applied, q.now_at, q.rate_used_until, q.closed_until, q.paused_at, q.deleted, q.timeline, q.turns, q.waiting, q.executing, q.open
FROM durable.queue AS q
WHERE q.name = $1::text
FOR UPDATE;
