-- Reads the fires of a schedule whose times are not among the latest. The caller leaves out the one that waits.
SELECT at, fired_at, kind, outcome, run_id
FROM durable_fire
WHERE schedule = ?
ORDER BY at DESC
LIMIT ? + 0 OFFSET ? + 0;
