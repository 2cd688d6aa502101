-- Returns what a worker has to know about the runs that it holds. Requests to pause or cancel, deadlines
-- that differ from the one that the worker knows ($5), and runs that were ended as cancelled (7) under
-- their epoch are returned each time. A wake-up is returned once, except if another transaction has
-- locked the row: then its mark stays, and it is returned again the next time.
WITH told AS MATERIALIZED (
    SELECT held.shard, held.id, held.epoch, run.status, run.control, run.woken, run.deadline_at, free.id AS free
    FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $5::timestamptz[]) AS held(shard, id, epoch, deadline_at)
    CROSS JOIN LATERAL (
        SELECT r.status, r.control, r.woken, r.deadline_at FROM durable.run AS r
        WHERE r.shard = held.shard AND r.id = held.id AND r.epoch = held.epoch
          AND (r.status = 7 OR (r.status = 2 AND r.owner = $4::uuid
               AND (r.control <> 0 OR r.woken OR r.deadline_at IS DISTINCT FROM held.deadline_at)))
        OFFSET 0
    ) AS run
    LEFT JOIN LATERAL (
        SELECT r.id FROM durable.run AS r
        WHERE r.shard = held.shard AND r.id = held.id AND r.epoch = held.epoch AND r.status = 2 AND r.owner = $4::uuid
          AND r.woken
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS free ON true
), cleared AS (
    UPDATE durable.run AS r
    SET woken = false
    FROM told
    WHERE r.shard = told.shard AND r.id = told.free
)
SELECT told.id, told.epoch, told.status, told.control, told.woken, told.deadline_at
FROM told;
