-- Selects all limits.
SELECT name, concurrent, rate, period_us, burst, declared, declared_version, declared_at, chosen, chosen_by, chosen_reason, chosen_at, last_change
FROM durable_step_limit
ORDER BY name;
