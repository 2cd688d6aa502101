-- Returns how many runs of a queue are admitted and not claimed yet, at most $3, and when the next run is due without
-- a place, or a key is to be looked at.
SELECT (
           SELECT count(*)::integer
           FROM (
               SELECT FROM durable.run AS r
               WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 3 AND r.wake_at <= $2::timestamptz
               LIMIT $3::integer
           ) AS unclaimed
       ),
       least((SELECT min(r.wake_at) FROM durable.run AS r WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 2 AND r.wake_at > $2::timestamptz),
             (SELECT min(k.check_at) FROM durable.queue_key AS k WHERE k.queue = $1::text AND k.check_at > $2::timestamptz));
