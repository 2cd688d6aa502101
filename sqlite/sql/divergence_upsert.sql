-- Records that a version of the code diverges from the history of a run.
INSERT INTO durable_divergence (run_id, version, at, call, detail)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (run_id, version) DO UPDATE SET at = excluded.at, call = excluded.call, detail = excluded.detail, continued_by = NULL;
