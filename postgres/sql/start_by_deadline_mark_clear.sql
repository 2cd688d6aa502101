-- Removes the mark (8) that a run has a time by which it must begin. If the run needs no place for its queue, its place then only keeps the
-- group key (0), because the queue may get settings again; without a group key, the place is deleted. The run must be running (2) at the
-- epoch $3. It returns whether it is.
WITH kept AS (
    UPDATE durable.run AS r
    SET control = r.control & ~8
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $3::bigint AND r.status = 2
    RETURNING r.lane
), emptied AS (
    UPDATE durable.place AS p
    SET state = 0, start_by = NULL
    WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND p.key <> '' AND EXISTS (SELECT FROM kept WHERE kept.lane & 3 = 0)
), removed AS (
    DELETE FROM durable.place AS p
    WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND p.key = '' AND EXISTS (SELECT FROM kept WHERE kept.lane & 3 = 0)
)
SELECT FROM kept;
