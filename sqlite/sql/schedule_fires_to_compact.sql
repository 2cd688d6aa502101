-- Reads the fires of a schedule whose times are not among the latest, without the one that waits (2).
SELECT at, fired_at, kind, outcome, run_id
FROM (
    SELECT at, fired_at, kind, outcome, run_id
    FROM durable_fire
    WHERE schedule = ?
    ORDER BY at DESC
    LIMIT ? + 0 OFFSET ? + 0
)
WHERE outcome <> 2;
