-- Lists those of the runs with the UUIDs $18, of the shards $17, that the filter selects, newest first, without payloads. If
-- $11 is not empty, the runs have a tag of this key and, unless $12 is empty, this value; $13 is the group key of their places
-- in the queue $4; $14 to $16 are the workflow, step and type of their failures; $19 are their parents.
SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
       CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
            THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
       r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
       r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
FROM unnest($17::smallint[], $18::uuid[]) AS item(shard, id)
JOIN durable.run AS r ON r.shard = item.shard AND r.id = item.id
WHERE r.id < $1::uuid AND r.id >= $24::uuid
  AND ($3::text = '' OR r.workflow = $3::text)
  AND ($4::text = '' OR r.queue = $4::text)
  AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
  AND ($6::text = '' OR starts_with(r.name, $6::text))
  AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
  AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
  AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
  AND (NOT $9::boolean OR r.parent_id IS NULL)
  AND ($20::text = '' OR r.version = $20::text)
  AND ($21::uuid IS NULL OR r.owner = $21::uuid)
  AND ($22::timestamptz IS NULL OR r.ended_at > $22::timestamptz)
  AND ($23::timestamptz IS NULL OR r.ended_at < $23::timestamptz)
  AND ($11::text = '' OR EXISTS (
      SELECT FROM durable.tag AS g
      WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
  ))
  AND ($13::text = '' OR EXISTS (
      SELECT FROM durable.place AS t WHERE t.shard = r.shard AND t.run_id = r.id AND t.queue = $4::text AND t.key = $13::text AND t.state > 0
  ))
  AND ($14::text = '' OR r.failed_step IS NOT NULL AND r.workflow = $14::text AND r.failed_step = $15::text AND r.failed_type = $16::text)
  AND (cardinality($19::uuid[]) = 0 OR r.parent_id = ANY ($19::uuid[]) OR (
      SELECT g.run_id FROM durable.generation AS g WHERE g.archive_id = r.parent_id AND g.shard = r.shard LIMIT 1 -- by the index of archive IDs on any version
  ) = ANY ($19::uuid[]))
ORDER BY r.id DESC
LIMIT $2::integer;
