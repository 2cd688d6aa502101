-- Counts the runs of a queue that are admitted and not claimed yet, at most as many as the third parameter.
SELECT count(*)
FROM (
    SELECT 1 FROM durable_run
    WHERE queue = ? AND lane & 7 = 2 AND status = 1 AND wake_at <= ?
    LIMIT ? + 0
);
