-- Removes the time by which a run had to begin, if it passed its queue to end; see repair_begin_next_generation.sql.
UPDATE durable_place SET start_by = NULL WHERE shard = ? AND run_id = ? AND state = 5;
