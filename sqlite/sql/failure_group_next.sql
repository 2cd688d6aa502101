-- Selects the first workflow, step and type of failed runs after the given ones.
SELECT workflow, failed_step, failed_type
FROM durable_run INDEXED BY durable_run_failure
WHERE failed_step IS NOT NULL AND (workflow, failed_step, failed_type) > (?, ?, ?)
ORDER BY workflow, failed_step, failed_type
LIMIT 1;
