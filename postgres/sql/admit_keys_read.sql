-- Returns keys of a queue.
SELECT k.key, k.paid_at, k.look_at, k.turns, k.levels, k.executing, k.open, k.lined, k.lined_begun, k.lined_children, k.behind
FROM unnest($2::text[]) AS item(key)
CROSS JOIN LATERAL (
    SELECT k.* FROM durable.queue_key AS k WHERE k.queue = $1::text AND k.key = item.key OFFSET 0
) AS k;
