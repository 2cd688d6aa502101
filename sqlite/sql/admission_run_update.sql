-- Writes what an admission has decided for a run.
UPDATE durable_run
SET lane = lane & ~7 | ?, status = ?, wake_at = ?
WHERE shard = ? AND id = ?;
