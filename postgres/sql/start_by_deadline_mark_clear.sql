-- Removes the mark (8) that a run has a time by which it must begin, with its place if the run needs none for
-- its queue. The run must be running (2) at the epoch $3. It returns whether it is.
WITH kept AS (
    UPDATE durable.run AS r
    SET control = r.control & ~8
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
    RETURNING r.lane
), removed AS (
    DELETE FROM durable.place AS p
    WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND EXISTS (SELECT FROM kept WHERE kept.lane & 3 = 0)
)
SELECT FROM kept;
