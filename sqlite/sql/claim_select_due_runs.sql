-- Selects the due runs of one lane that are not suspects, oldest first. The third parameter
-- is 1 if they must have begun, and the fourth is 0 if they must not have a history. A run with the mark 8 has been claimed in vain
-- at most.
SELECT shard, id, wake_at
FROM durable_run
WHERE lane = ? AND wake_at <= ?
  AND (started_at IS NOT NULL AND control & 8 = 0) >= ? AND (epoch > 0 AND control & 8 = 0) <= ?
  AND crashes + (status = 2) < 2
ORDER BY wake_at
LIMIT ? + 0;
