-- Returns the group key of a run's place, if the queue counts something for it. The queue is locked.
SELECT k.key, k.paid_at, k.look_at, k.turns, k.levels, k.executing, k.open, k.lined, k.lined_begun, k.lined_children, k.behind
FROM durable.place AS p
CROSS JOIN LATERAL (
    SELECT k.* FROM durable.queue_key AS k WHERE k.queue = p.queue AND k.key = p.key OFFSET 0
) AS k
WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND p.queue = $3::text;
