-- Selects the archive IDs of the superseded generations of a run.
SELECT archive_id FROM durable_generation WHERE run_id = ?;
