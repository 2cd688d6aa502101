-- Selects the divergences of a run.
SELECT version, at, call, detail, continued_by FROM durable_divergence WHERE run_id = ? ORDER BY version;
