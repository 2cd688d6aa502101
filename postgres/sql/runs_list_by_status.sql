-- Lists paused (4), failed (6) and expired (9) runs, newest first, without payloads. The index run_idle has the runs of each status in this order. The
-- statement merges the statuses that the filter selects, and reads no runs of the others; without an order of each, PostgreSQL would sort all of them.
-- It walks over the runs that the filter excludes. If $11 is not empty, the runs have a tag of this key and, unless $12 is empty, this value.
SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
       CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
            THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
       r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
       r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
FROM (
    (SELECT p.* FROM durable.run AS p WHERE p.wake_at IS NULL AND p.status = 4 AND 4 = ANY ($5::smallint[]) ORDER BY p.id DESC)
    UNION ALL
    (SELECT f.* FROM durable.run AS f WHERE f.wake_at IS NULL AND f.status = 6 AND 6 = ANY ($5::smallint[]) ORDER BY f.id DESC)
    UNION ALL
    (SELECT x.* FROM durable.run AS x WHERE x.wake_at IS NULL AND x.status = 9 AND 9 = ANY ($5::smallint[]) ORDER BY x.id DESC)
) AS r
WHERE r.id < $1::uuid AND r.id >= $17::uuid
  AND ($3::text = '' OR r.workflow = $3::text)
  AND ($4::text = '' OR r.queue = $4::text)
  AND ($6::text = '' OR starts_with(r.name, $6::text))
  AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
  AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
  AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
  AND (NOT $9::boolean OR r.parent_id IS NULL)
  AND ($13::text = '' OR r.version = $13::text)
  AND ($14::uuid IS NULL OR r.owner = $14::uuid)
  AND ($15::timestamptz IS NULL OR r.ended_at > $15::timestamptz)
  AND ($16::timestamptz IS NULL OR r.ended_at < $16::timestamptz)
  AND ($11::text = '' OR EXISTS (
      SELECT FROM durable.tag AS g
      WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
  ))
ORDER BY r.id DESC
LIMIT $2::integer;
