-- Updates steps whose row exists and is not terminal, with the same fence as step_insert.sql. A row that
-- another transaction has locked is left out, so that one slow transaction never delays a whole batch.
--
-- A terminal state (3, 4) is always written. A started marker (1) or a backoff (2) is written only if
-- this epoch has not written a later state before: a late marker changes nothing. A row keeps its place
-- in the run's order (seq).
WITH item AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::smallint[], $2::uuid[], $3::text[], $4::smallint[], $5::smallint[], $6::integer[], $7::bigint[],
        $8::bytea[], $9::bytea[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::boolean[],
        $14::integer[], $15::bytea[]
    ) AS item(
        shard, run_id, name, kind, status, attempt, epoch,
        output, error, started_at, ended_at, next_at, anyway, seq, failures
    )
), locked AS MATERIALIZED (
    SELECT item.*
    FROM item
    CROSS JOIN LATERAL (
        SELECT FROM durable.run AS r
        WHERE r.shard = item.shard AND r.id = item.run_id AND r.epoch = item.epoch AND r.status = 2
          AND (r.control = 0 OR item.anyway)
        OFFSET 0
    ) AS fence
    CROSS JOIN LATERAL (
        SELECT FROM durable.step AS s
        WHERE s.shard = item.shard AND s.run_id = item.run_id AND s.name = item.name
          AND s.status < 3
          AND (item.status >= 3 OR s.epoch <> item.epoch OR s.attempt < item.attempt
               OR (s.attempt = item.attempt AND s.status <= item.status))
        FOR UPDATE SKIP LOCKED
    ) AS free
)
UPDATE durable.step AS s
SET status = locked.status, attempt = locked.attempt, epoch = locked.epoch,
    output = locked.output, error = locked.error, failures = locked.failures,
    started_at = coalesce(locked.started_at, s.started_at), ended_at = locked.ended_at, next_at = locked.next_at
FROM locked
WHERE s.shard = locked.shard AND s.run_id = locked.run_id AND s.name = locked.name;
