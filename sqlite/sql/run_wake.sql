-- Wakes a run because of a signal, or because a child has ended. A waiting run (3) becomes due. A running run (2) is marked
-- as woken, so that it checks again before it parks. Other runs stay as they are. Returns the status of the run.
UPDATE durable_run
SET woken = (status = 2),
    wake_at = CASE status WHEN 3 THEN ?1 ELSE wake_at END
WHERE shard = ?2 AND id = ?3
  AND (status = 3 AND (wake_at IS NULL OR wake_at > ?1) OR status = 2 AND woken = 0)
RETURNING status;
