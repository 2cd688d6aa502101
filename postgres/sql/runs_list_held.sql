-- Lists held runs, newest first, without payloads: those whose code does not fit their history (control 16), and those that were held for another
-- reason and have recorded nothing since. Few runs have diverged or lose their process, so a table and the index run_suspect lead to them, and they
-- are sorted. If $11 is not empty, the runs have a tag of this key and, unless $12 is empty, this value.
WITH held AS MATERIALIZED (
    SELECT r.shard, r.id FROM durable.run AS r WHERE r.wake_at IS NOT NULL AND r.crashes > 0
    UNION
    SELECT d.shard, d.run_id FROM durable.divergence AS d
)
SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
       CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
            THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
       r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
       r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at
FROM held
CROSS JOIN LATERAL ( -- OFFSET 0: otherwise PostgreSQL 18 reads all runs and looks for each among the held ones
    SELECT r.* FROM durable.run AS r WHERE r.shard = held.shard AND r.id = held.id AND r.id < $1::uuid AND r.id >= $17::uuid
    OFFSET 0
) AS r
WHERE (r.wake_at IS NULL AND r.status = 4 AND r.control & 16 = 16 OR r.wake_at IS NOT NULL AND r.crashes > 0 AND r.reason <> ''
       AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) <= r.progress)
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
  AND ($11::text = '' OR EXISTS (
      SELECT FROM durable.tag AS g
      WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
  ))
ORDER BY r.id DESC
LIMIT $2::integer;
