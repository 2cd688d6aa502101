-- Selects the history of a run without payloads. Only choices (kind 4), Maps (7), renewals (16) and graphs (17) have their output, from which
-- the states of other checkpoints follow.
SELECT run_id, name, kind, status, attempt, epoch, CASE WHEN kind IN (4, 7, 16, 17) THEN output END, NULL, started_at, ended_at, next_at, seq, NULL
FROM durable_step
WHERE shard = ? AND run_id = ?
ORDER BY name;
