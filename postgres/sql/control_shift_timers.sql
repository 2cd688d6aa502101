-- Moves the times that paused runs wait for by the length of the pause, so that the remaining time is the
-- same as before the pause. This applies to sleeps (3), to calls that wait for their next attempt or for
-- a signal, to the retry of a run that retries itself (16), and to the runs' own deadlines. Times before the
-- pause are not moved. The runs are locked, and the next statement resumes them.
--
-- A run learns of a pause a moment later, and a sleep may be over by then. So a sleep is not moved if a
-- later call of the run began when or after the sleep was over. A compensation (8) does not count as a
-- later call, because it is executed after the run's function has returned.
--
-- The start of a step (1), a Tx step (2) or a compensation without an outcome is moved too, because the
-- total timeout counts from it.
WITH frozen AS MATERIALIZED (
    SELECT run.shard, run.id, run.paused_at, $3::timestamptz - run.paused_at AS pause,
           CASE WHEN run.deadline_at > run.paused_at THEN run.deadline_at + ($3::timestamptz - run.paused_at) END AS deadline_at
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.paused_at, r.deadline_at FROM durable.run AS r
        WHERE r.shard = item.shard AND r.id = item.id AND r.status = 4 AND r.paused_at < $3::timestamptz
        OFFSET 0
    ) AS run
), extended AS (
    UPDATE durable.run AS r
    SET deadline_at = frozen.deadline_at
    FROM frozen
    WHERE r.shard = frozen.shard AND r.id = frozen.id AND frozen.deadline_at IS NOT NULL
), recorded AS MATERIALIZED (
    SELECT step.*, frozen.paused_at, frozen.pause,
           max(step.started_at) FILTER (WHERE step.kind <> 8) OVER (
               PARTITION BY step.shard, step.run_id ORDER BY step.seq GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
           ) AS later
    FROM frozen
    CROSS JOIN LATERAL (
        SELECT s.shard, s.run_id, s.name, s.kind, s.status, s.seq, s.started_at, s.next_at FROM durable.step AS s
        WHERE s.shard = frozen.shard AND s.run_id = frozen.id
        OFFSET 0
    ) AS step
), moved AS MATERIALIZED (
    SELECT shard, run_id, name,
           CASE WHEN next_at > paused_at AND (status < 3 OR kind = 16 OR kind = 3 AND (later IS NULL OR later < next_at))
                THEN next_at + pause END AS next_at,
           CASE WHEN status < 3 AND kind IN (1, 2, 8) THEN least(started_at + pause, $3::timestamptz) END AS started_at
    FROM recorded
)
UPDATE durable.step AS s
SET next_at = coalesce(moved.next_at, s.next_at), started_at = coalesce(moved.started_at, s.started_at)
FROM moved
WHERE s.shard = moved.shard AND s.run_id = moved.run_id AND s.name = moved.name
  AND (moved.next_at IS NOT NULL OR moved.started_at IS NOT NULL);
