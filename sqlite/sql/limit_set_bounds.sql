-- Sets the bounds of a limit, whatever code declares.
INSERT INTO durable_step_limit (name, concurrent, rate, period_us, burst, chosen, chosen_by, chosen_reason, chosen_at, last_change)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE
SET concurrent = excluded.concurrent, rate = excluded.rate, period_us = excluded.period_us, burst = excluded.burst,
    chosen = excluded.chosen, chosen_by = excluded.chosen_by, chosen_reason = excluded.chosen_reason, chosen_at = excluded.chosen_at,
    last_change = excluded.last_change;
