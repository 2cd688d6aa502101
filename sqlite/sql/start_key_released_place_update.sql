-- Gives the place of a released run, if it has one, the time ?1 by which the run must begin. If there is no such time, and the queue
-- has no row any more (lane ?2), the place only keeps the group key (0).
UPDATE durable_place
SET start_by = ?1, state = CASE WHEN ?2 & 3 > 0 OR ?1 IS NOT NULL THEN 1 ELSE 0 END
WHERE shard = ?3 AND run_id = ?4;
