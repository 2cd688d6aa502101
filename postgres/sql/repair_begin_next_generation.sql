-- Makes a run its next generation, if it still has the status $3, the epoch $4 and the control bits $5. It begins with
-- the epoch $6, the status $7, the control bits $8 and the owner $17. A run that continues ($18) has the input $19 and the hash $21 of its first input. If the
-- run had not ended, it keeps its deadline, and if it waits (3), it does so at most until then: the deadline may have been set
-- after $9 was computed. If it had ended and begins paused (4), the pause begins now ($12). The event, of the type $20, has the numbers of both generations. It returns
-- the run.
--
-- If the run was held for drift (control 16) and the new generation is not, the divergences of the run are deleted.
--
-- A run that passed its queue (admission 6) to end has no place that counts. It arrives anew (1), without the time by which it had
-- to begin. A run with a place (2) keeps it: the place counts until an admission sees that the run waits or has ended. A run whose
-- place was taken back when it ended (0) arrives anew (1), if its queue has a row.
WITH changed AS (
    UPDATE durable.run AS r
    SET epoch = $6::bigint, status = $7::smallint, control = $8::smallint,
        wake_at = CASE WHEN r.status < 5 AND $7::smallint = 3 THEN least($9::timestamptz, r.deadline_at) ELSE $9::timestamptz END,
        deadline_at = CASE WHEN r.status < 5 THEN r.deadline_at ELSE $10::timestamptz END,
        input = CASE WHEN $18::boolean THEN $19::bytea ELSE r.input END,
        first_input = CASE WHEN $18::boolean THEN $21::bytea ELSE r.first_input END,
        progress = $11::integer, crashes = 0, owner = $17::uuid, woken = false, output = NULL, error = NULL, failed_step = NULL, failed_type = NULL, ended_at = NULL,
        lane = CASE WHEN r.lane & 7 = 6 AND NOT $18::boolean
                      OR r.status >= 5 AND r.lane & 7 = 0 AND (SELECT NOT q.deleted FROM durable.queue AS q WHERE q.name = r.queue)
                    THEN (r.lane & (-8)::bigint) | 1 ELSE r.lane END,
        reason = CASE WHEN $7::smallint = 4 THEN r.reason END,
        paused_by = CASE WHEN $7::smallint = 4 THEN r.paused_by END,
        paused_at = CASE WHEN $7::smallint <> 4 THEN NULL WHEN r.status < 5 THEN r.paused_at ELSE $12::timestamptz END,
        cancel_reason = NULL, cancelled_by = NULL, cancelled_at = NULL
    WHERE r.shard = $1::smallint AND r.id = $2::uuid AND r.status = $3::smallint AND r.epoch = $4::bigint AND r.control = $5::smallint
    RETURNING r.shard, r.id
), passed AS (
    UPDATE durable.place AS p
    SET start_by = CASE WHEN p.state <> 5 THEN p.start_by END
    WHERE p.shard = $1::smallint AND p.run_id = $2::uuid AND EXISTS (SELECT FROM changed) AND NOT $18::boolean
), forgotten AS (
    DELETE FROM durable.divergence AS d
    WHERE d.shard = $1::smallint AND d.run_id = $2::uuid AND $5::smallint & 16 <> 0 AND $8::smallint & 16 = 0 AND EXISTS (SELECT FROM changed)
), told AS (
    INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value, new_value)
    SELECT $12::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
           changed.shard, $20::smallint, changed.id, $13::text, $14::text, $15::text, $16::text
    FROM changed
)
SELECT changed.id FROM changed;
