-- Inserts a notice that a run was terminated while a worker owned it.
INSERT OR REPLACE INTO durable_terminated (worker, run_id, epoch, at) VALUES (?, ?, ?, ?);
