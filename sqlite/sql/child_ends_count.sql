-- Counts the end of a child in the call of its parent that waits for many children. Returns 1 if the end does not wake the parent. If
-- the call has no row, it returns nothing.
UPDATE durable_step
SET child_ends = coalesce(child_ends, 0) + 1
WHERE run_id = ?1 AND name = ?2
RETURNING coalesce(child_ends_awaited > 0 AND child_ends >= child_ends_awaited, 0) = 0;
