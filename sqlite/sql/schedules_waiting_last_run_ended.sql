-- Reads the schedules with a time that waits, if the last run has ended (5 and above) or was deleted, or is still to be
-- cancelled (control 4). There are as many such rows as schedules with a waiting time.
SELECT s.name
FROM durable_schedule AS s
LEFT JOIN durable_run AS r ON r.id = s.last_run AND r.status < 5
WHERE s.waiting_at IS NOT NULL AND s.paused = 0
  AND (r.id IS NULL OR (s.cancels <> 0 AND (r.control & 4) = 0))
ORDER BY s.waiting_at
LIMIT ? + 0;
