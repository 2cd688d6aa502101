-- Selects the due runs of one lane that are suspects: with the claim they have crashed at least twice.
-- A claim takes at most one of them.
SELECT shard, id, wake_at
FROM durable_run
WHERE lane = ? AND wake_at <= ?
  AND (started_at IS NOT NULL AND control & 8 = 0) >= ? AND (epoch > 0 AND control & 8 = 0) <= ?
  AND crashes > 0 AND crashes + (status = 2) >= 2
ORDER BY wake_at
LIMIT ? + 0;
