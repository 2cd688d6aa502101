-- Lists the failed and expired runs of the workflow $13 whose errors have this step and type, newest first, without
-- payloads. The index run_failure has them in this order. The statement walks over the runs that the filter excludes. If
-- $11 is not empty, the runs have a tag of this key and, unless $12 is empty, this value.
SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
       CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
            THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
       r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
       r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
FROM durable.run AS r
WHERE r.failed_step IS NOT NULL AND r.workflow = $13::text AND r.failed_step = $14::text AND r.failed_type = $15::text
  AND r.id < $1::uuid AND r.id >= $20::uuid
  AND ($3::text = '' OR r.workflow = $3::text)
  AND ($4::text = '' OR r.queue = $4::text)
  AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
  AND ($6::text = '' OR starts_with(r.name, $6::text))
  AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
  AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
  AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
  AND (NOT $9::boolean OR r.parent_id IS NULL)
  AND ($16::text = '' OR r.version = $16::text)
  AND ($17::uuid IS NULL OR r.owner = $17::uuid)
  AND ($18::timestamptz IS NULL OR r.ended_at > $18::timestamptz)
  AND ($19::timestamptz IS NULL OR r.ended_at < $19::timestamptz)
  AND ($11::text = '' OR EXISTS (
      SELECT FROM durable.tag AS g
      WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
  ))
ORDER BY r.id DESC
LIMIT $2::integer;
