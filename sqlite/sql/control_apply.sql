-- Applies one change of a control request, if the run still has the given status, epoch and control bits. A run that ends
-- (5 and above) loses its owner and gets the error. ?10 selects the change of wake_at (1 never, 2 now, unless it waits for
-- its start key in the lane ?15, see store.UnreleasedLane), ?11 the columns
-- that record the request: 1 a pause, 2 a resume, 3 a cancel. A run that was admitted passes (6) when it is cancelled: a worker
-- that executes as many runs of its queue as it may claims it, too. A run that ends while it waits for its start key leaves its
-- queue (0). The statement returns the lane.
UPDATE durable_run
SET status = ?8,
    control = ?9,
    detached = ?14,
    wake_at = CASE WHEN ?10 = 1 THEN NULL WHEN ?10 = 2 AND lane <> ?15 THEN ?1 ELSE wake_at END,
    lane = CASE WHEN ?8 >= 5 AND lane = ?15 THEN lane & ~7 WHEN ?11 = 3 AND lane & 3 = 2 THEN lane | 4 ELSE lane END,
    woken = CASE WHEN ?8 >= 5 THEN 0 ELSE woken END,
    owner = CASE WHEN ?8 >= 5 THEN NULL ELSE owner END,
    ended_at = CASE WHEN ?8 >= 5 THEN ?1 ELSE ended_at END,
    error = CASE WHEN ?8 >= 5 THEN CAST(?12 AS BLOB) ELSE error END,
    crashes = CASE ?11 WHEN 2 THEN 0 ELSE crashes END,
    reason = CASE ?11 WHEN 0 THEN reason WHEN 1 THEN ?2 END,
    paused_by = CASE ?11 WHEN 0 THEN paused_by WHEN 1 THEN ?3 END,
    paused_at = CASE ?11 WHEN 0 THEN paused_at WHEN 1 THEN coalesce(paused_at, ?1) END,
    cancel_reason = CASE ?11 WHEN 3 THEN ?2 ELSE cancel_reason END,
    cancelled_by = CASE ?11 WHEN 3 THEN ?3 ELSE cancelled_by END,
    cancelled_at = CASE ?11 WHEN 3 THEN ?1 ELSE cancelled_at END
WHERE shard = ?4 AND id = ?5 AND status = ?6 AND epoch = ?7 AND control = ?13
RETURNING lane;
