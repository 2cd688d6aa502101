-- Sets when a live run expires (?1; NULL: never), and its timeout (?5; 0: none; not NULL, so that a run
-- whose starts fold gets no other deadline when it is released), unless it is to be cancelled (control 4), or
-- its own deadline was over at ?2, so that it may have begun to expire; a paused run (4) has not
-- if its deadline came after the pause. A waiting run (3), and a pending one (1) that is held, becomes
-- claimable when the deadline comes, or earlier if it was to wake earlier; if it is in the line of its queue, an admission checks
-- it at that time. A running run (2) is marked as woken, so that its owner reads the deadline.
UPDATE durable_run
SET deadline_at = ?1, timeout = ?5,
    wake_at = CASE WHEN status = 3 OR (status = 1 AND (crashes > 0 OR lane & 3 = 3)) THEN min(coalesce(wake_at, ?1), coalesce(?1, wake_at)) ELSE wake_at END,
    woken = (woken <> 0 OR status = 2)
WHERE shard = ?3 AND id = ?4 AND status < 5 AND (control & 4) = 0
  AND (deadline_at IS NULL OR deadline_at > ?2 OR (status = 4 AND deadline_at > paused_at))
RETURNING status;
