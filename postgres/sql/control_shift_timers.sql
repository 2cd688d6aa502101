-- Moves the times that paused runs wait for by as long as they were paused, so that as
-- much is left of them as when they were paused: what sleeps (3), what waits for its
-- next attempt or for a signal, and the runs' own deadlines. What was due before stays. The
-- runs are locked, and resumed by the next statement.
WITH frozen AS MATERIALIZED (
    SELECT run.shard, run.id, run.paused_at, $3::timestamptz - run.paused_at AS pause
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.paused_at FROM durable.run AS r
        WHERE r.shard = item.shard AND r.id = item.id AND r.status = 4 AND r.paused_at < $3::timestamptz
        OFFSET 0
    ) AS run
), extended AS (
    UPDATE durable.run AS r
    SET deadline_at = r.deadline_at + frozen.pause
    FROM frozen
    WHERE r.shard = frozen.shard AND r.id = frozen.id AND r.deadline_at > frozen.paused_at
)
UPDATE durable.step AS s
SET next_at = s.next_at + frozen.pause
FROM frozen
WHERE s.shard = frozen.shard AND s.run_id = frozen.id
  AND s.next_at > frozen.paused_at AND (s.status < 3 OR s.kind = 3);
