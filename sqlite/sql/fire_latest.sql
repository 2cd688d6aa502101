-- Reads the latest fires of a schedule, the newest first.
SELECT at, fired_at, kind, outcome, run_id
FROM durable_fire
WHERE schedule = ?
ORDER BY fired_at DESC, at DESC
LIMIT ? + 0;
