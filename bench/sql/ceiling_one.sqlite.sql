-- Ceiling: inserts a single row, for the rows of a batch that remain after the groups of eight.
INSERT INTO ceiling_step (shard, run_id, name, output) VALUES (?, ?, ?, ?);
