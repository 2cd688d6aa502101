-- Reads the fires of the latest times of a schedule, the newest first.
SELECT at, fired_at, kind, outcome, run_id
FROM durable_fire
WHERE schedule = ?
ORDER BY at DESC
LIMIT ? + 0;
