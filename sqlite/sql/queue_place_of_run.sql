-- Selects the place of a run, the admission state of the run, and how many runs are before it, of which a limited number is counted:
-- those in its part of the queue's line (2), or, if it waits behind its key (3), those of its key.
SELECT p.queue, p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by, r.lane & 7,
       CASE p.state
       WHEN 2 THEN (
           SELECT count(*)
           FROM (
               SELECT 1 FROM durable_place AS q
               WHERE q.queue = p.queue AND q.state = 2 AND q.begun = p.begun AND q.root = p.root AND q.priority > p.priority
               LIMIT ?3 + 0
           )
       ) + (
           SELECT count(*)
           FROM (
               SELECT 1 FROM durable_place AS q
               WHERE q.queue = p.queue AND q.state = 2 AND q.begun = p.begun AND q.root = p.root AND q.priority = p.priority
                 AND (q.turn, q.arrived_at, q.run_id) < (p.turn, p.arrived_at, p.run_id)
               LIMIT ?3 + 0
           )
       )
       WHEN 3 THEN coalesce((SELECT k.in_line FROM durable_queue_key AS k WHERE k.queue = p.queue AND k.key = p.key), 0) + (
           SELECT count(*)
           FROM (
               SELECT 1 FROM durable_place AS q
               WHERE q.queue = p.queue AND q.key = p.key AND q.state = 3 AND q.begun = p.begun AND q.root = p.root AND q.priority > p.priority
               LIMIT ?3 + 0
           )
       ) + (
           SELECT count(*)
           FROM (
               SELECT 1 FROM durable_place AS q
               WHERE q.queue = p.queue AND q.key = p.key AND q.state = 3 AND q.begun = p.begun AND q.root = p.root AND q.priority = p.priority
                 AND (q.arrived_at, q.run_id) < (p.arrived_at, p.run_id)
               LIMIT ?3 + 0
           )
       )
       ELSE 0 END
FROM durable_place AS p
LEFT JOIN durable_run AS r ON r.shard = p.shard AND r.id = p.run_id
WHERE p.shard = ?1 AND p.run_id = ?2 AND p.state > 0;
