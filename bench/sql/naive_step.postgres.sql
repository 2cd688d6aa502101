-- The naive design's checkpoint.
INSERT INTO bench.naive_step (run_id, name, output) VALUES ($1, $2, $3);
