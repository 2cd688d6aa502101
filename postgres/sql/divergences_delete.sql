-- Deletes the divergences of runs that are neither held for drift (4, control 16) nor running (2), because they have continued
-- since, or were deleted.
DELETE FROM durable.divergence AS d
WHERE NOT EXISTS (
    SELECT FROM durable.run AS r
    WHERE r.shard = d.shard AND r.id = d.run_id AND (r.status = 2 OR r.status = 4 AND r.control & 16 <> 0)
);
