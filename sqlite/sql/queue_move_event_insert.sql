-- Inserts the event of a run that was given another queue or another priority, in the transaction that changes it.
INSERT INTO durable_event (run_id, type, at, actor, reason, old_value, new_value) VALUES (?, ?, ?, ?, ?, ?, ?);
