-- Lists runs with a tag of this value, newest first, without payloads. The index tag_value has them in
-- this order. The statement walks over the runs that the filter excludes.
SELECT run.*
FROM durable.tag AS t
CROSS JOIN LATERAL (
    SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
           CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
                THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
           r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
           r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
    FROM durable.run AS r
    WHERE r.shard = t.shard AND r.id = t.run_id
      AND ($3::text = '' OR r.workflow = $3::text)
      AND ($4::text = '' OR r.queue = $4::text)
      AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
      AND ($6::text = '' OR starts_with(r.name, $6::text))
      AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
      AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
      AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
      AND (NOT $9::boolean OR r.parent_id IS NULL)
      AND ($13::text = '' OR r.version = $13::text)
      AND ($14::uuid IS NULL OR r.owner = $14::uuid)
      AND ($15::timestamptz IS NULL OR r.ended_at > $15::timestamptz)
      AND ($16::timestamptz IS NULL OR r.ended_at < $16::timestamptz)
    OFFSET 0
) AS run
WHERE t.key = $11::text AND t.value = $12::text AND t.run_id < $1::uuid AND t.run_id >= $17::uuid
ORDER BY t.run_id DESC
LIMIT $2::integer;
