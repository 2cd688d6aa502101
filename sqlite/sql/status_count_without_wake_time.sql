-- Counts runs without a wake time that have the status ?1, up to a number.
SELECT ?1, count(*)
FROM (
    SELECT 1
    FROM durable_run INDEXED BY durable_run_idle
    WHERE wake_at IS NULL AND status IN (3, 4, 6, 9) AND status = ?1
    LIMIT ?2 + 0
);
