-- Deletes the divergences of runs that have ended or were deleted, and those without a version that continued the run, of runs that are
-- neither held for drift (4, control 16) nor running (2), because they were resumed since.
DELETE FROM durable.divergence AS d
WHERE NOT EXISTS (
    SELECT FROM durable.run AS r
    WHERE r.shard = d.shard AND r.id = d.run_id AND (r.status = 2 OR r.status = 4 AND r.control & 16 <> 0 OR r.status < 5 AND d.continued_by IS NOT NULL)
);
