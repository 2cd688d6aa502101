-- Removes the bounds of an operator, so that those that code has declared apply.
UPDATE durable_step_limit
SET concurrent = coalesce(declared ->> 'concurrent', 0), rate = coalesce(declared ->> 'rate', 0),
    period_us = coalesce((declared ->> 'period') / 1000, 0), burst = coalesce(declared ->> 'burst', 0),
    chosen = NULL, chosen_by = NULL, chosen_reason = NULL, chosen_at = NULL, last_change = ?2
WHERE name = ?1 AND declared IS NOT NULL;
