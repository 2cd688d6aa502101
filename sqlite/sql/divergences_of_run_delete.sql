-- Deletes the divergences of a run.
DELETE FROM durable_divergence WHERE run_id = ?;
