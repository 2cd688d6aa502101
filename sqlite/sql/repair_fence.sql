-- Takes a live run away from its owner for a repair: it is paused (4) with the next epoch, if it still has the given
-- status, epoch and control bits. Unless the run is paused itself (control 1) or held for drift (16), it is paused for the
-- repair (1 and 32).
UPDATE durable_run
SET status = 4, epoch = ?6, owner = NULL, wake_at = NULL, woken = 0,
    reason = CASE WHEN control & 17 THEN reason ELSE ?8 END,
    paused_by = CASE WHEN control & 17 THEN paused_by ELSE ?9 END,
    paused_at = coalesce(paused_at, ?7),
    control = CASE WHEN control & 17 THEN control ELSE control | 33 END
WHERE shard = ?1 AND id = ?2 AND status = ?3 AND epoch = ?4 AND control = ?5 AND status < 5;
