-- Makes a run its next generation, if it still has the status ?3, the epoch ?4 and the control bits ?5. It begins with
-- the epoch ?6, the status ?7, the control bits ?8 and the owner ?12. A run that continues (?13) has the input ?14 and the hash ?16 of its first input. If
-- the run had not ended, it keeps its deadline, and if it waits (3), it does so at most until then: the deadline may have been
-- set after ?9 was computed. If it had ended and begins paused (4), the pause begins now (?15). A run that passed its queue (admission 6) to end arrives anew (1). A run with a
-- place (2) keeps it: the place counts until an admission sees that the run waits or has ended. A run whose place was taken back
-- when it ended (0) arrives anew (1), if its queue has a row.
UPDATE durable_run
SET epoch = ?6, status = ?7, control = ?8,
    wake_at = CASE WHEN status < 5 AND ?7 = 3 THEN min(?9, coalesce(deadline_at, ?9)) ELSE ?9 END, deadline_at = CASE WHEN status < 5 THEN deadline_at ELSE ?10 END,
    input = CASE WHEN ?13 THEN CAST(?14 AS BLOB) ELSE input END, first_input = CASE WHEN ?13 THEN CAST(?16 AS BLOB) ELSE first_input END, progress = ?11,
    crashes = 0, owner = ?12, woken = 0, output = NULL, error = NULL, failed_step = NULL, failed_type = NULL, ended_at = NULL,
    lane = CASE WHEN lane & 7 = 6 AND NOT ?13
                  OR status >= 5 AND lane & 7 = 0 AND EXISTS (SELECT 1 FROM durable_queue AS q WHERE q.name = durable_run.queue AND q.deleted = 0)
                THEN (lane & -8) | 1 ELSE lane END,
    reason = CASE WHEN ?7 = 4 THEN reason END,
    paused_by = CASE WHEN ?7 = 4 THEN paused_by END,
    paused_at = CASE WHEN ?7 <> 4 THEN NULL WHEN status < 5 THEN paused_at ELSE ?15 END,
    cancel_reason = NULL, cancelled_by = NULL, cancelled_at = NULL
WHERE shard = ?1 AND id = ?2 AND status = ?3 AND epoch = ?4 AND control = ?5;
