-- Locks and returns runs of the queue $1 that an admission decides about at $2, at most $4 of each kind: 1 those that have
-- ended, or that wait or are paused although they have a place or are in line; 2 those that are due without a place; 3
-- strays, which are in the lanes $3; 4 if the queue is being deleted, those that have no place to execute, except those that
-- wait for their start keys in the lane $8; 5 those that
-- are admitted and not claimed, and whose time is over if they were admitted at $6 or before, or that were never executed if
-- the queue is paused, or its settings have changed, or a bound is exceeded ($7). Runs that another transaction has locked are
-- left out. It returns nothing if another transaction has locked the row of the queue, or if the queue has no row, unless it is
-- known to have none ($5). The applied settings may be followed by the position of a search, on a second line.
WITH mine AS MATERIALIZED (
    SELECT q.deleted, q.paused_at IS NOT NULL OR pg_catalog.split_part(q.applied, pg_catalog.chr(10), 1) IS DISTINCT FROM coalesce(q.chosen, q.declared) OR $7::boolean AS takes_back
    FROM durable.queue AS q WHERE q.name = $1::text AND NOT $5::boolean FOR UPDATE SKIP LOCKED
), departed AS MATERIALIZED (
    SELECT r.shard, r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
    FROM durable.run AS r
    WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 1
      AND ($5::boolean OR EXISTS (SELECT FROM mine))
    LIMIT $4::integer
    FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
    SELECT r.shard, r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
    FROM durable.run AS r
    WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 2 AND r.wake_at <= $2::timestamptz
      AND ($5::boolean OR EXISTS (SELECT FROM mine))
    ORDER BY r.wake_at
    LIMIT $4::integer
    FOR UPDATE SKIP LOCKED
), stray AS MATERIALIZED (
    SELECT r.*
    FROM unnest($3::bigint[]) AS stray(lane)
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
        FROM durable.run AS r
        WHERE r.lane = stray.lane AND r.wake_at IS NOT NULL
        ORDER BY r.wake_at
        LIMIT $4::integer
        FOR UPDATE SKIP LOCKED
    ) AS r
    WHERE EXISTS (SELECT FROM mine WHERE NOT mine.deleted)
    LIMIT $4::integer
), live AS MATERIALIZED (
    SELECT r.*
    FROM durable.place AS p
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
        FROM durable.run AS r
        WHERE r.shard = p.shard AND r.id = p.run_id AND r.status < 5 AND r.lane & 1 = 1 AND r.lane <> $8::bigint
        FOR UPDATE SKIP LOCKED
    ) AS r
    WHERE ($5::boolean OR EXISTS (SELECT FROM mine WHERE mine.deleted)) AND p.queue = $1::text AND p.state > 0 AND p.state < 4
    LIMIT $4::integer
), unclaimed AS MATERIALIZED (
    SELECT r.shard, r.id, (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
    FROM durable.run AS r
    WHERE r.queue = $1::text AND r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 3
      AND r.wake_at <= CASE WHEN (SELECT mine.takes_back FROM mine) THEN $2::timestamptz ELSE $6::timestamptz END
      AND (r.deadline_at <= $2::timestamptz OR (r.started_at IS NULL OR r.control & 8 <> 0) AND ((SELECT mine.takes_back FROM mine) OR r.control & 8 <> 0 AND EXISTS (
          SELECT FROM durable.place AS p WHERE p.shard = r.shard AND p.run_id = r.id AND p.start_by <= $2::timestamptz)))
      AND EXISTS (SELECT FROM mine WHERE NOT mine.deleted)
    ORDER BY r.wake_at
    LIMIT $4::integer
    FOR UPDATE OF r SKIP LOCKED
)
SELECT s.kind, s.id, s.admission, s.started, s.status, s.control, s.wake_at, s.deadline_at, s.is_root, s.priority,
       p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM (
    SELECT 1 AS kind, departed.* FROM departed
    UNION ALL
    SELECT 2, due.* FROM due
    UNION ALL
    SELECT 3, stray.* FROM stray
    UNION ALL
    SELECT 4, live.* FROM live
    UNION ALL
    SELECT 5, unclaimed.* FROM unclaimed
) AS s
LEFT JOIN LATERAL (
    SELECT p.* FROM durable.place AS p WHERE p.shard = s.shard AND p.run_id = s.id OFFSET 0
) AS p ON true;
