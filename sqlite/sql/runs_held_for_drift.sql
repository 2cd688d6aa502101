-- Selects the runs above an ID that are held for drift (control 16) and not paused (1, 2), and on which the version has not
-- diverged. The table of divergences leads, because it has few rows.
SELECT r.id, r.queue, r.workflow
FROM (SELECT DISTINCT run_id FROM durable_divergence WHERE continued_by IS NULL) AS d
CROSS JOIN durable_run AS r ON r.id = d.run_id
WHERE r.status = 4 AND r.control & 19 = 16 AND r.id > ?2
  AND NOT EXISTS (SELECT 1 FROM durable_divergence AS own WHERE own.run_id = r.id AND own.version = ?1)
ORDER BY r.id;
