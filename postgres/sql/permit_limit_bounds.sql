-- Returns the bounds of limits, and until when nothing is granted under them.
SELECT l.name, l.concurrent, l.rate, l.period_us, l.burst, l.closed_until
FROM durable.step_limit AS l
WHERE l.name = ANY ($1::text[]);
