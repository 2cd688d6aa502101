-- Removes the bounds of an operator, so that those that code has declared apply.
UPDATE durable.step_limit AS l
SET concurrent = coalesce((l.declared::json ->> 'concurrent')::integer, 0), rate = coalesce((l.declared::json ->> 'rate')::integer, 0),
    period_us = coalesce((l.declared::json ->> 'period')::bigint / 1000, 0), burst = coalesce((l.declared::json ->> 'burst')::integer, 0),
    chosen = NULL, chosen_by = NULL, chosen_reason = NULL, chosen_at = NULL, last_change = $2::text
WHERE l.name = $1::text AND l.declared IS NOT NULL
RETURNING l.name;
