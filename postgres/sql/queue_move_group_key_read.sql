-- Returns the group key of a run's place, if the queue counts something for it. The queue is locked.
SELECT k.key, k.rate_used_until, k.check_at, k.turns, k.in_line_by_priority, k.executing, k.open, k.in_line, k.in_line_begun, k.in_line_children, k.behind
FROM durable.place AS p
CROSS JOIN LATERAL (
    SELECT k.* FROM durable.queue_key AS k WHERE k.queue = p.queue AND k.key = p.key OFFSET 0
) AS k
WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND p.queue = $3::text;
