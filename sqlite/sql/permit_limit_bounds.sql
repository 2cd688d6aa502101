-- Selects the bounds of a limit.
SELECT concurrent, rate, period_us, burst
FROM durable_step_limit
WHERE name = ?;
