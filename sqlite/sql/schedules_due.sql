-- Reads the schedules that are due first. The caller compares next_at with the time, so that one statement tells both
-- what is due and when the next one is.
SELECT name, next_at
FROM durable_schedule
WHERE next_at IS NOT NULL
ORDER BY next_at
LIMIT ? + 0;
