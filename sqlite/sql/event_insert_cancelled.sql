-- Inserts the event of a run that was cancelled, with who has requested the cancel and why, in the transaction that ends the run.
INSERT INTO durable_event (run_id, type, at, actor, reason)
SELECT id, ?1, ?2, cancelled_by, cancel_reason FROM durable_run WHERE shard = ?3 AND id = ?4;
