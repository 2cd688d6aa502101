-- Wakes a run, because a signal or a child's end came for it: one that waits (3) becomes
-- claimable, one that is running (2) is marked, and looks again before it parks. Others
-- need no waking, and one that is awake is left alone. Answers which it was.
UPDATE durable_run
SET woken = (status = 2),
    wake_at = CASE status WHEN 3 THEN ?1 ELSE wake_at END
WHERE shard = ?2 AND id = ?3
  AND (status = 3 AND (wake_at IS NULL OR wake_at > ?1) OR status = 2 AND woken = 0)
RETURNING status;
