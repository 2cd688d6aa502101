-- Returns a row if a run has recorded how it ends, in the checkpoint ?3.
SELECT 1 FROM durable_step WHERE shard = ?1 AND run_id = ?2 AND name = ?3;
