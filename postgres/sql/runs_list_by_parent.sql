-- Lists the children of the runs with the UUIDs $18, of the shards $17, newest first, without payloads. It reads every child. The
-- children of superseded generations are among them, whose parent is the archive ID of the generation.
-- The other parameters are those of runs_list_by_id.sql.
SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
       CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
            THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
       r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
       r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
FROM (
    SELECT one.shard, one.parent FROM unnest($17::smallint[], $18::uuid[]) AS one(shard, parent)
    UNION -- a parent may be given as an archive ID too
    SELECT one.shard, g.archive_id
    FROM unnest($17::smallint[], $18::uuid[]) AS one(shard, parent)
    CROSS JOIN LATERAL (
        SELECT own.archive_id FROM durable.generation AS own
        WHERE own.run_id = one.parent AND own.shard = one.shard
        OFFSET 0
    ) AS g
) AS item
CROSS JOIN LATERAL (
    SELECT child.* FROM durable.run AS child
    WHERE child.shard = item.shard AND child.parent_id = item.parent
    OFFSET 0
) AS r
WHERE r.id < $1::uuid AND r.id >= $23::uuid
  AND ($3::text = '' OR r.workflow = $3::text)
  AND ($4::text = '' OR r.queue = $4::text)
  AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
  AND ($6::text = '' OR starts_with(r.name, $6::text))
  AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
  AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
  AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
  AND (NOT $9::boolean OR r.parent_id IS NULL)
  AND ($19::text = '' OR r.version = $19::text)
  AND ($20::uuid IS NULL OR r.owner = $20::uuid)
  AND ($21::timestamptz IS NULL OR r.ended_at > $21::timestamptz)
  AND ($22::timestamptz IS NULL OR r.ended_at < $22::timestamptz)
  AND ($11::text = '' OR EXISTS (
      SELECT FROM durable.tag AS g
      WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
  ))
  AND ($13::text = '' OR EXISTS (
      SELECT FROM durable.place AS t WHERE t.shard = r.shard AND t.run_id = r.id AND t.queue = $4::text AND t.key = $13::text AND t.state > 0
  ))
  AND ($14::text = '' OR r.failed_step IS NOT NULL AND r.workflow = $14::text AND r.failed_step = $15::text AND r.failed_type = $16::text)
ORDER BY r.id DESC
LIMIT $2::integer;
