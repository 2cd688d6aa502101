-- Counts the runs of a lane that are due after a time and not after another by status, up to a number.
SELECT status, count(*)
FROM (
    SELECT status
    FROM durable_run
    WHERE wake_at IS NOT NULL AND lane = ? AND wake_at > ? AND wake_at <= ?
    ORDER BY wake_at
    LIMIT ? + 0
)
GROUP BY status;
