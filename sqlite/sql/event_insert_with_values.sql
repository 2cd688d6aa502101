-- Inserts an event with an old and a new value, in the transaction that changes the run: a move to another queue or priority, or a repair.
INSERT INTO durable_event (run_id, type, at, actor, reason, old_value, new_value) VALUES (?, ?, ?, ?, ?, ?, ?);
