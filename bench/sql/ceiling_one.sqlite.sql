-- The ceiling's single row: what is left of a batch after the eights.
INSERT INTO ceiling_step (shard, run_id, name, output) VALUES (?, ?, ?, ?);
