-- Marks a waiting signal as received by a step.
UPDATE durable_signal
SET step = ?
WHERE shard = ? AND run_id = ? AND id = ? AND step IS NULL;
