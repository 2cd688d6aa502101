-- Pauses (4) a run that is running (2) at the given epoch, because the code does not fit its history. The control bit 16 tells
-- this from a pause (1, 2), which keeps its reason.
UPDATE durable_run
SET status = 4, wake_at = NULL, control = control | 16, owner = NULL, woken = 0,
    paused_at = CASE WHEN control & 3 THEN paused_at ELSE ?4 END,
    reason = CASE WHEN control & 3 THEN coalesce(reason, ?5) ELSE ?5 END,
    trace = coalesce(?6, trace)
WHERE shard = ?1 AND id = ?2 AND epoch = ?3 AND status = 2;
