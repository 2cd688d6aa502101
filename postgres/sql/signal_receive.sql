-- Takes the oldest waiting signal of a name for a step, and completes the step with its payload. If there
-- is no signal, the step is recorded as given. The statement is for one item, so that each of several
-- receives in a batch sees what the one before took. runs_lock_for_batch.sql has locked the run before, so no signal
-- arrives meanwhile.
--
-- A step that continues to wait gets no end, even if one is given for the other case. If the step has
-- ended (3, 4), its row is left unchanged, and no signal is taken. A row of the same attempt keeps its
-- start and its time limit.
--
-- The row of the signal shows $15 as its receiver.
--
-- A wait with a time limit takes no signal that arrived after the limit; that signal waits for another
-- receive. A wait that begins here takes any signal that exists.
WITH fence AS MATERIALIZED (
    SELECT r.control FROM durable.run AS r
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.epoch = $7::bigint AND r.status = 2
), bound AS MATERIALIZED (
    SELECT s.next_at FROM durable.step AS s
    WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.name = $3::text AND s.attempt >= $6::integer
), waiting AS MATERIALIZED (
    SELECT s.id, s.payload, s.created_at
    FROM durable.signal AS s
    WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.name = $14::text AND s.step IS NULL
      AND s.arrived_at <= coalesce((SELECT bound.next_at FROM bound), 'infinity'::timestamptz)
    ORDER BY s.created_at, s.id
    LIMIT 1
), noted AS (
    INSERT INTO durable.step AS s (
        shard, run_id, name, kind, status, attempt, epoch, output, error, started_at, ended_at, next_at, seq
    )
    SELECT $1::smallint, $2::uuid, $3::text, $4::smallint,
           CASE WHEN waiting.id IS NULL THEN $5::smallint ELSE 3 END, $6::integer, $7::bigint,
           CASE WHEN waiting.id IS NULL THEN $8::bytea ELSE waiting.payload END,
           CASE WHEN waiting.id IS NULL THEN $9::bytea END,
           $10::timestamptz,
           CASE WHEN waiting.id IS NULL THEN CASE WHEN $5::smallint >= 3 THEN $11::timestamptz END
                ELSE coalesce($11::timestamptz, greatest(waiting.created_at, $10::timestamptz)) END,
           $12::timestamptz, $13::integer
    FROM fence
    LEFT JOIN waiting ON true
    ON CONFLICT (shard, run_id, name) DO UPDATE
    SET status = excluded.status, attempt = excluded.attempt, epoch = excluded.epoch,
        output = excluded.output, error = excluded.error, ended_at = excluded.ended_at,
        started_at = CASE WHEN s.attempt = excluded.attempt THEN s.started_at ELSE excluded.started_at END,
        next_at = CASE WHEN s.attempt = excluded.attempt THEN s.next_at ELSE excluded.next_at END
    WHERE s.status < 3
    RETURNING s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch, s.output, s.error, s.started_at, s.ended_at, s.next_at, s.seq, s.failures
), taken AS (
    UPDATE durable.signal AS s
    SET step = $15::text
    WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.id = (SELECT waiting.id FROM waiting)
      AND EXISTS (SELECT FROM noted)
)
SELECT fence.control, noted.*
FROM noted CROSS JOIN fence;
