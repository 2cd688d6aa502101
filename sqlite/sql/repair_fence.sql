-- Takes a live run away from its owner for a repair: it is paused (4) with the next epoch, if it still has the given
-- status, epoch and control bits.
UPDATE durable_run
SET status = 4, epoch = ?6, owner = NULL, wake_at = NULL, woken = 0,
    reason = CASE WHEN control & 1 THEN reason ELSE ?8 END,
    paused_by = CASE WHEN control & 1 THEN paused_by ELSE ?9 END,
    paused_at = coalesce(paused_at, ?7),
    control = control | 1
WHERE shard = ?1 AND id = ?2 AND status = ?3 AND epoch = ?4 AND control = ?5 AND status < 5;
