-- Returns the bounds of limits.
SELECT l.name, l.concurrent, l.rate, l.period_us, l.burst
FROM durable.step_limit AS l
WHERE l.name = ANY ($1::text[]);
