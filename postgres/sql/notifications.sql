-- What a worker has to know of the runs that it holds: what is asked of them, and another
-- deadline than it knows ($5), each time; which were woken, once; and which were ended as
-- cancelled (7) under their epoch. A row that another transaction has locked is told of all
-- the same, and again the next time: only then is the mark taken off.
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
