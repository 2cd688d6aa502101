-- Sets the bounds of a limit, whatever code declares. $10 is the timeline of the database.
INSERT INTO durable.step_limit AS l (name, concurrent, rate, period_us, burst, chosen, chosen_by, chosen_reason, chosen_at, timeline, last_change)
VALUES ($1::text, $2::integer, $3::integer, $4::bigint, $5::integer, $6::text, $7::text, $8::text, $9::timestamptz, $10::text, $11::text)
ON CONFLICT (name) DO UPDATE
SET concurrent = excluded.concurrent, rate = excluded.rate, period_us = excluded.period_us, burst = excluded.burst,
    chosen = excluded.chosen, chosen_by = excluded.chosen_by, chosen_reason = excluded.chosen_reason, chosen_at = excluded.chosen_at,
    last_change = excluded.last_change
RETURNING l.name;
