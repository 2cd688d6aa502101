-- What a worker has to know of the runs that it holds: what is asked of them, each time;
-- and which were woken, once. A row that another transaction has locked is told of all
-- the same, and again the next time: only then is the mark taken off.
WITH told AS MATERIALIZED (
    SELECT held.shard, held.id, held.epoch, run.control, run.woken, free.id AS free
    FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS held(shard, id, epoch)
    CROSS JOIN LATERAL (
        SELECT r.control, r.woken FROM durable.run AS r
        WHERE r.shard = held.shard AND r.id = held.id AND r.epoch = held.epoch AND r.status = 2 AND r.owner = $4::uuid
          AND (r.control <> 0 OR r.woken)
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
SELECT told.id, told.epoch, told.control, told.woken
FROM told;
