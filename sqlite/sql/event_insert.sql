-- Inserts an event of a run, in the transaction that causes it.
INSERT INTO durable_event (run_id, type, at) VALUES (?, ?, ?);
