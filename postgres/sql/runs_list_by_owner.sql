-- Lists the runs that the worker $14 executes, newest first, without payloads. A run that is executed has a lease, so the index run_wake leads to
-- it. The statement walks over the other runs that have a wake time. If $11 is not empty, the runs have a tag of this key and, unless $12 is
-- empty, this value.
WITH RECURSIVE lane AS (
    (
        SELECT r.lane
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL
        ORDER BY r.lane
        LIMIT 1
    )
    UNION ALL
    SELECT ahead.lane
    FROM lane
    CROSS JOIN LATERAL (
        SELECT r.lane
        FROM durable.run AS r
        WHERE r.wake_at IS NOT NULL AND r.lane > lane.lane
        ORDER BY r.lane
        LIMIT 1
    ) AS ahead
)
SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
       CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
            THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
       r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
       r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
FROM lane
CROSS JOIN LATERAL ( -- OFFSET 0: otherwise the planner may read all runs by the primary key
    SELECT r.* FROM durable.run AS r WHERE r.lane = lane.lane AND r.wake_at IS NOT NULL AND r.owner = $14::uuid AND r.id < $1::uuid
    OFFSET 0
) AS r
WHERE r.id >= $17::uuid
  AND ($3::text = '' OR r.workflow = $3::text)
  AND ($4::text = '' OR r.queue = $4::text)
  AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
  AND ($6::text = '' OR starts_with(r.name, $6::text))
  AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
  AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
  AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
  AND (NOT $9::boolean OR r.parent_id IS NULL)
  AND ($13::text = '' OR r.version = $13::text)
  AND ($15::timestamptz IS NULL OR r.ended_at > $15::timestamptz)
  AND ($16::timestamptz IS NULL OR r.ended_at < $16::timestamptz)
  AND ($11::text = '' OR EXISTS (
      SELECT FROM durable.tag AS g
      WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
  ))
ORDER BY r.id DESC
LIMIT $2::integer;
