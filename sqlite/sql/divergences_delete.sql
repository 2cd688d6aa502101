-- Deletes the divergences of runs that are neither held for drift (4, control 16) nor running (2): they have continued since.
DELETE FROM durable_divergence
WHERE NOT EXISTS (
    SELECT 1 FROM durable_run AS r
    WHERE r.id = durable_divergence.run_id AND (r.status = 2 OR r.status = 4 AND r.control & 16 <> 0)
);
