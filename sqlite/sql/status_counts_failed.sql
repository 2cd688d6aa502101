-- Counts failed and expired runs by status, the newest up to a number.
SELECT status, count(*)
FROM (
    SELECT status
    FROM durable_run INDEXED BY durable_run_failed
    WHERE failed_type IS NOT NULL AND id > x''
    ORDER BY id DESC
    LIMIT ? + 0
)
GROUP BY status;
