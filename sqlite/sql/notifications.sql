-- The runs of a worker of which something was asked, or that were woken. The last
-- condition is the index's own, word for word.
SELECT id, epoch, control, woken
FROM durable_run
WHERE owner = ? AND status = 2 AND owner IS NOT NULL AND (control <> 0 OR woken <> 0);
