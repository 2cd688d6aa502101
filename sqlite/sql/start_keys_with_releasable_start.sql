-- Reads the keys with a start that waits for the end of a run, if that run has ended (5 and above) or was removed. There
-- are as many rows with after_id as starts that wait.
SELECT f.workflow, f.key, f.kind
FROM durable_fold AS f
LEFT JOIN durable_run AS r ON r.id = f.after_id AND r.status < 5
WHERE f.after_id IS NOT NULL AND r.id IS NULL
LIMIT ? + 0;
