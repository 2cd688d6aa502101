-- Deletes the divergences of runs that have ended or were deleted, and those without a version that continued the run, of runs that are
-- neither held for drift (4, control 16) nor running (2), because they were resumed since.
DELETE FROM durable_divergence
WHERE NOT EXISTS (
    SELECT 1 FROM durable_run AS r
    WHERE r.id = durable_divergence.run_id
      AND (r.status = 2 OR r.status = 4 AND r.control & 16 <> 0 OR r.status < 5 AND durable_divergence.continued_by IS NOT NULL)
);
