-- Selects the divergences of a run.
SELECT version, at, call, detail FROM durable_divergence WHERE run_id = ? ORDER BY version;
