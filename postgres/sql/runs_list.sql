-- Lists runs, newest first, without payloads. It reads the primary key of each shard backwards from $1, up to $16 runs that the filter selects, and
-- merges them. It returns no run below the last one of a shard in which it found $16 runs, because the next runs of that shard may come first.
-- It walks over the runs that the filter excludes.
WITH part AS MATERIALIZED (
    SELECT run.*
    FROM generate_series(0, 63) AS place(shard)
    CROSS JOIN LATERAL (
        SELECT r.id, r.parent_id, r.name, r.workflow, r.version, r.queue, r.priority, r.status, r.epoch, r.owner,
               CASE WHEN r.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable.step AS s WHERE s.shard = r.shard AND s.run_id = r.id) > r.progress
                    THEN 0::smallint ELSE r.crashes END AS crashes, NULL::bytea AS input, NULL::bytea AS output, r.error, r.reason, r.trace,
               r.created_at, r.started_at, r.ended_at, r.wake_at, r.deadline_at,
               r.detached, r.control, r.paused_by, r.cancelled_by, r.cancel_reason, r.paused_at, r.cancelled_at,
               row_number() OVER (ORDER BY r.id DESC) AS number
        FROM durable.run AS r
        WHERE r.shard = place.shard::smallint AND r.id < $1::uuid AND r.id >= $15::uuid
          AND ($3::text = '' OR r.workflow = $3::text)
          AND ($4::text = '' OR r.queue = $4::text)
          AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
          AND ($6::text = '' OR starts_with(r.name, $6::text))
          AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
          AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
          AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
          AND (NOT $9::boolean OR r.parent_id IS NULL)
          AND ($11::text = '' OR r.version = $11::text)
          AND ($12::uuid IS NULL OR r.owner = $12::uuid)
          AND ($13::timestamptz IS NULL OR r.ended_at > $13::timestamptz)
          AND ($14::timestamptz IS NULL OR r.ended_at < $14::timestamptz)
        ORDER BY r.id DESC
        LIMIT $16::integer
    ) AS run
), reached AS MATERIALIZED (
    SELECT part.id FROM part WHERE part.number = $16::integer ORDER BY part.id DESC LIMIT 1
)
SELECT part.id, part.parent_id, part.name, part.workflow, part.version, part.queue, part.priority, part.status, part.epoch, part.owner,
       part.crashes, part.input, part.output, part.error, part.reason, part.trace,
       part.created_at, part.started_at, part.ended_at, part.wake_at, part.deadline_at,
       part.detached, part.control, part.paused_by, part.cancelled_by, part.cancel_reason, part.paused_at, part.cancelled_at
FROM part
LEFT JOIN reached ON true
WHERE reached.id IS NULL OR part.id >= reached.id
ORDER BY part.id DESC
LIMIT $2::integer;
