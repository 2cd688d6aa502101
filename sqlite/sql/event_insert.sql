-- Records what happened to a run, in the transaction that makes it true.
INSERT INTO durable_event (run_id, type, at) VALUES (?, ?, ?);
