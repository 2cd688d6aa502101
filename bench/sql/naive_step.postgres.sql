-- Inserts a checkpoint of the naive design.
INSERT INTO bench.naive_step (run_id, name, output) VALUES ($1, $2, $3);
