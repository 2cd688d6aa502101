-- Selects the runs of a worker that have a control request or were woken. The last condition repeats that of the index,
-- word for word, so that SQLite uses it.
SELECT id, epoch, control, woken
FROM durable_run
WHERE owner = ? AND status = 2 AND owner IS NOT NULL AND (control <> 0 OR woken <> 0);
