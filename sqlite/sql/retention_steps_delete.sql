-- Deletes the checkpoints of a run, or of a superseded generation by its archive ID.
DELETE FROM durable_step WHERE run_id = ?;
