-- Claims a run that is held for drift (control 16) and not paused (1, 2), as claim_run.sql claims a due one. A run that needs a
-- place in its queue (the admission state in its lane is not 0) becomes pending (1) and due instead. It gets the version ?8 and, apart from its
-- admission state, the lane ?7. The run was read before, with the queue ?9, the priority ?10 and the version ?11.
-- The versions ?12 have diverged on it, and do not claim it again.
UPDATE durable_run
SET status = CASE WHEN lane & 7 THEN 1 ELSE 2 END,
    control = control & ~16,
    epoch = CASE WHEN lane & 7 THEN epoch ELSE ((epoch >> 32) + 1) << 32 | ?3 END,
    owner = CASE WHEN lane & 7 THEN NULL ELSE ?4 END,
    wake_at = CASE WHEN lane & 7 THEN ?6 ELSE ?5 END,
    lane = lane & 7 | ?7, version = ?8, diverged = ?12,
    woken = 0, reason = NULL, paused_at = NULL, paused_by = NULL
WHERE shard = ?1 AND id = ?2 AND status = 4 AND control & 19 = 16 AND queue = ?9 AND priority = ?10 AND version = ?11;
