-- Claims due runs by the index on wake_at: new runs, runs whose timer, backoff or deadline is due, and
-- runs whose owner lost its lease.
--
-- It reads one range of that index for each lane of $1, in the order of $1, and no other runs. $11 tells for each lane
-- whether it takes only runs that were executed before, because the queue is paused. If $14 is true, it takes only runs that
-- were never executed, and so have no history. A run with the mark 8 has been claimed in vain at most.
-- claim_check_lanes_and_versions.sql, the statement before, looks for runs in lanes that this process has not seen yet. If there are
-- any, nothing is claimed: the process adds them, in the order of their priorities, and claims again.
-- A claimed run gets the version $13 of its lane, unless that is empty, and with it the lane $12.
--
-- SKIP LOCKED lets concurrent claims pass each other. MATERIALIZED ensures that rows are locked once,
-- whatever is joined to them.
--
-- If a run is running (2), its owner died or stalled. Such claims in a row are counted as crashes. The
-- count starts again at 1 if the run has made progress since the last crash: if it has more terminal checkpoints and
-- children (6) together than then. At $6 crashes the run is paused (4) instead, so that it does not kill
-- its process again and again. Zero means no limit.
--
-- If a lease ended after $9 and not after $10, that is no crash: the claiming worker could not renew its
-- own leases at that time, and perhaps the owner could not either.
--
-- A run that is to be paused (control 1, 2), and whose owner died before it released the run, is paused
-- in the same way without a crash, and its event has the actor and the reason of the pause. The event of a run that
-- crashed too often has the reason as its new value. Lost leases and pauses are recorded as events, and so is another version (7) of
-- a run that was executed before.
--
-- An epoch has its count, which increases by one here, in the upper 32 bits, and the nonce of the claim
-- ($8) in the lower 32 bits.
--
-- A run that has two crashes, or has two with this claim, is a suspect. At most $7 (0 or 1) of the $3
-- claimed runs are suspects, so that each suspect is executed alone, and the next death counts against
-- the right run. The index run_suspect finds them.
--
-- The owners of the claimed runs are those of $4, in turns: one worker, or one for each run that may be claimed.
--
-- A setting that ends with the transaction passes the claimed IDs to claim_histories.sql, the next
-- statement. The histories need a statement of their own, because the snapshot of this one is older than
-- its locks. The setting leaves out runs that nobody has executed before, which have no history. It also
-- leaves out runs whose owner lost its lease: the owner's last write may be in progress, so their
-- histories are read later.
WITH own AS MATERIALIZED (
    SELECT item.lane, item.only_begun, item.next_lane, item.next_version
    FROM unnest($1::bigint[], $11::boolean[], $12::bigint[], $13::text[]) AS item(lane, only_begun, next_lane, next_version)
    WHERE current_setting('durable_claim.unknown', true) IS DISTINCT FROM 'true'
), suspect AS MATERIALIZED (
    SELECT r.shard, r.id, r.status, r.control, r.crashes, r.progress, r.wake_at, r.paused_by, r.reason, own.next_lane, own.next_version,
           CASE WHEN r.epoch > 0 AND own.next_version <> '' AND own.next_version <> r.version THEN r.version END AS version_before
    FROM own
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.status, r.control, r.crashes, r.progress, r.wake_at, r.paused_by, r.reason, r.epoch, r.version
        FROM durable.run AS r
        WHERE r.lane = own.lane AND r.wake_at <= $2::timestamptz
          AND r.crashes > 0 AND r.crashes + (r.status = 2)::integer >= 2
        ORDER BY r.wake_at
        LIMIT $7::integer
        FOR UPDATE SKIP LOCKED
    ) AS r
    LIMIT $7::integer
), due AS MATERIALIZED (
    SELECT r.shard, r.id, r.status, r.control, r.crashes, r.progress, r.wake_at, r.paused_by, r.reason, own.next_lane, own.next_version,
           CASE WHEN r.epoch > 0 AND own.next_version <> '' AND own.next_version <> r.version THEN r.version END AS version_before
    FROM own
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, r.status, r.control, r.crashes, r.progress, r.wake_at, r.paused_by, r.reason, r.epoch, r.version
        FROM durable.run AS r
        WHERE r.lane = own.lane AND r.wake_at <= $2::timestamptz
          AND r.crashes + (r.status = 2)::integer < 2
          AND (NOT own.only_begun OR r.started_at IS NOT NULL AND r.control & 8 = 0) AND (NOT $14::boolean OR r.epoch = 0 OR r.control & 8 <> 0)
        ORDER BY r.wake_at
        LIMIT $3::integer - (SELECT count(*) FROM suspect)
        FOR UPDATE SKIP LOCKED
    ) AS r
    LIMIT $3::integer - (SELECT count(*) FROM suspect)
), counted AS MATERIALIZED (
    SELECT due.shard, due.id, due.crashes, due.progress, due.control & 3 <> 0 AS halted, due.status = 2 AS lost, due.paused_by, due.reason,
           due.next_lane, due.next_version, due.version_before,
           CASE WHEN due.status = 2 AND due.control & 3 = 0
                 AND (due.wake_at > $9::timestamptz AND due.wake_at <= $10::timestamptz) IS NOT TRUE THEN (
               SELECT (count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6))::integer FROM durable.step AS s
               WHERE s.shard = due.shard AND s.run_id = due.id
           ) END AS reached -- NULL: no crash
    FROM (SELECT * FROM due UNION ALL SELECT * FROM suspect) AS due
), judged AS MATERIALIZED (
    SELECT shard, id, halted, lost, paused_by, reason, next_lane, next_version, version_before,
           ($4::uuid[])[(1 + (row_number() OVER () - 1) % cardinality($4::uuid[]))::integer] AS owner,
           coalesce(reached, progress) AS progress,
           CASE WHEN reached IS NULL THEN crashes
                WHEN reached > progress THEN 1
                ELSE least(crashes + 1, 32767) END AS crashes,
           reached IS NOT NULL AND $6::integer > 0
               AND CASE WHEN reached > progress THEN 1 ELSE crashes + 1 END >= $6::integer AS hopeless
    FROM counted
), taken AS (
    UPDATE durable.run AS r
    SET status = CASE WHEN judged.hopeless OR judged.halted THEN 4 ELSE 2 END,
        epoch = CASE WHEN judged.hopeless OR judged.halted THEN r.epoch ELSE ((r.epoch >> 32) + 1) << 32 | $8::bigint END,
        owner = CASE WHEN judged.hopeless OR judged.halted THEN NULL ELSE judged.owner END,
        wake_at = CASE WHEN judged.hopeless OR judged.halted THEN NULL ELSE $5::timestamptz END,
        lane = CASE WHEN judged.hopeless OR judged.halted THEN r.lane ELSE judged.next_lane END,
        version = CASE WHEN judged.hopeless OR judged.halted OR judged.next_version = '' THEN r.version ELSE judged.next_version END,
        woken = false,
        lost_at = CASE WHEN judged.lost THEN $2::timestamptz ELSE r.lost_at END,
        lost_by = CASE WHEN judged.lost THEN r.owner ELSE r.lost_by END,
        control = CASE WHEN judged.hopeless THEN r.control | 1 ELSE r.control END,
        paused_at = CASE WHEN judged.hopeless THEN $2::timestamptz ELSE r.paused_at END,
        started_at = coalesce(r.started_at, $2::timestamptz),
        progress = judged.progress,
        crashes = judged.crashes,
        reason = CASE WHEN judged.halted THEN r.reason WHEN judged.hopeless THEN 'its process died or lost its lease ' || judged.crashes::text
            || ' times in a row without a new checkpoint: find the cause, then resume the run'
            WHEN judged.crashes > judged.lost::integer THEN r.reason END -- why it was held: no checkpoint was recorded since
    FROM judged
    WHERE r.shard = judged.shard AND r.id = judged.id
    RETURNING judged.lost AND NOT (judged.hopeless OR judged.halted) AS overtaken, r.progress, r.lane & 7 = 6 AS passing,
              r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
              r.crashes, r.input, r.output, r.error, r.reason, r.trace,
              r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
              r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
), told AS (
    INSERT INTO durable.event (at, shard, type, run_id, actor, reason, old_value, new_value)
    SELECT $2::timestamptz, judged.shard, 1, judged.id, NULL, NULL, NULL, NULL FROM judged WHERE judged.lost
    UNION ALL
    SELECT $2::timestamptz, judged.shard, 104, judged.id,
           CASE WHEN judged.halted THEN judged.paused_by END, CASE WHEN judged.halted THEN judged.reason END, NULL,
           CASE WHEN judged.hopeless THEN taken.reason END
    FROM judged JOIN taken ON taken.id = judged.id WHERE judged.hopeless OR judged.halted
    UNION ALL
    SELECT $2::timestamptz, judged.shard, 7, judged.id, NULL, NULL, judged.version_before, judged.next_version
    FROM judged WHERE judged.version_before IS NOT NULL AND NOT (judged.hopeless OR judged.halted)
), passed AS MATERIALIZED ( -- computed once, not for each row
    SELECT set_config('durable_claim.ids', coalesce(string_agg(id::text, ',') FILTER (WHERE epoch >> 32 > 1 AND NOT overtaken), ''), true) AS ids
    FROM taken
    WHERE status = 2
)
SELECT passed.ids IS NOT NULL, taken.*
FROM taken
CROSS JOIN passed;
