-- Returns the row of a queue; whether an admission has something to do at $2: a run has departed or is due without a
-- place, or a key is to be looked at, or the lanes $3 have strays, or the time of a run is over that was admitted at $4 or
-- before and is not claimed; whether a run is admitted that was never executed; whether there are runs in each line: of runs
-- that have begun, of children, and of roots; and when the next run is due without a place, or a key is to be looked at.
SELECT coalesce(q.chosen, q.declared), q.applied, q.now_at, q.rate_used_until, q.closed_until, q.paused_at, q.deleted, q.timeline, q.turns, q.waiting, q.executing, q.open,
       EXISTS (SELECT FROM durable.run AS r
               WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 1)
           OR EXISTS (SELECT FROM durable.run AS r WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 2 AND r.wake_at <= $2::timestamptz)
           OR EXISTS (SELECT FROM durable.queue_key AS k WHERE k.queue = $1::text AND k.check_at <= $2::timestamptz)
           OR EXISTS (
               SELECT FROM unnest($3::bigint[]) AS stray(lane)
               CROSS JOIN LATERAL (SELECT FROM durable.run AS r WHERE r.lane = stray.lane AND r.wake_at IS NOT NULL LIMIT 1) AS r)
           OR EXISTS (
               SELECT FROM durable.run AS r
               WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 3 AND r.wake_at <= $4::timestamptz
                 AND (r.deadline_at <= $2::timestamptz OR r.control & 8 <> 0 AND EXISTS (
                     SELECT FROM durable.place AS p WHERE p.shard = r.shard AND p.run_id = r.id AND p.start_by <= $2::timestamptz))),
       EXISTS (SELECT FROM durable.run AS r WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 3 AND (r.started_at IS NULL OR r.control & 8 <> 0)),
       EXISTS (SELECT FROM durable.place AS p WHERE p.queue = $1::text AND p.state = 2 AND p.begun),
       EXISTS (SELECT FROM durable.place AS p WHERE p.queue = $1::text AND p.state = 2 AND NOT p.begun AND NOT p.root),
       EXISTS (SELECT FROM durable.place AS p WHERE p.queue = $1::text AND p.state = 2 AND NOT p.begun AND p.root),
       least((SELECT min(r.wake_at) FROM durable.run AS r WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 2 AND r.wake_at > $2::timestamptz),
             (SELECT min(k.check_at) FROM durable.queue_key AS k WHERE k.queue = $1::text AND k.check_at > $2::timestamptz))
FROM durable.queue AS q
WHERE q.name = $1::text;
