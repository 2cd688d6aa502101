-- Inserts a checkpoint of the naive design.
INSERT INTO naive_step (run_id, name, output) VALUES (?, ?, ?);
