-- Selects the next idle runs of the status ?2 after the run ?3, at most ?4, and whether each is a root of the queue ?1 that has begun and
-- that no admission has counted.
SELECT id, queue = ?1 AND lane & 7 = 0 AND parent_id = x'' AND started_at IS NOT NULL AND control & 8 = 0
FROM durable_run INDEXED BY durable_run_idle
WHERE wake_at IS NULL AND status IN (3, 4, 6, 9) AND status = ?2 AND id > ?3
ORDER BY id
LIMIT ?4 + 0;
