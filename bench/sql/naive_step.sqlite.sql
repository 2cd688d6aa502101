-- The naive design's checkpoint.
INSERT INTO naive_step (run_id, name, output) VALUES (?, ?, ?);
