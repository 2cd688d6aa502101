-- Records which version has continued a run after its divergences.
UPDATE durable_divergence SET continued_by = ? WHERE run_id = ?;
