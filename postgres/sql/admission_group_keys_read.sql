-- Returns keys of a queue.
SELECT k.key, k.rate_used_until, k.check_at, k.turns, k.in_line_by_priority, k.executing, k.open, k.in_line, k.in_line_begun, k.in_line_children, k.behind
FROM unnest($2::text[]) AS item(key)
CROSS JOIN LATERAL (
    SELECT k.* FROM durable.queue_key AS k WHERE k.queue = $1::text AND k.key = item.key OFFSET 0
) AS k;
