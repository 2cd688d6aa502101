-- Selects the runs that were terminated while the worker owned them.
SELECT run_id, epoch
FROM durable_terminated
WHERE worker = ?;
