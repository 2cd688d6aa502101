-- Makes a run claimable that waited because starts with its key fold. It changes nothing if the run was ever executed
-- (epoch 0: never), has ended, is to be cancelled (control 4), or has another queue or priority than the lane is for. A
-- paused run (4) stays paused, and begins when it is resumed. A timeout that was set or removed while the run waited (not NULL)
-- is kept.
UPDATE durable_run
SET lane = ?1, deadline_at = CASE WHEN timeout IS NULL THEN ?3 ELSE deadline_at END,
    timeout = coalesce(timeout, nullif(?9, 0)), input = coalesce(CAST(?4 AS BLOB), input), wake_at = CASE WHEN status = 1 THEN ?2 ELSE wake_at END
WHERE shard = ?5 AND id = ?6 AND status IN (1, 4) AND epoch = 0 AND (control & 4) = 0 AND queue = ?7 AND priority = ?8;
