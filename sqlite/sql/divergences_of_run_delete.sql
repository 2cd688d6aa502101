-- Deletes the versions that diverged from the history of a run.
DELETE FROM durable_divergence WHERE run_id = ?;
