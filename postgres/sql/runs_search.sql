-- Examines the $2 newest runs of each shard below $1, and returns, newest first, the IDs of those that the filter selects. The first column is the
-- ID below which runs have not been examined; NULL: all have been. Without a match there is one row, whose second column is NULL.
WITH part AS MATERIALIZED (
    SELECT r.id, r.number, r.matches
    FROM generate_series(0, 63) AS place(shard)
    CROSS JOIN LATERAL (
        SELECT own.id, row_number() OVER (ORDER BY own.id DESC) AS number,
               ($3::text = '' OR own.workflow = $3::text)
               AND ($4::text = '' OR own.queue = $4::text)
               AND (cardinality($5::smallint[]) = 0 OR own.status = ANY ($5::smallint[]))
               AND (cardinality($6::smallint[]) = 0 OR own.priority = ANY ($6::smallint[]))
               AND ($7::timestamptz IS NULL OR own.created_at > $7::timestamptz)
               AND ($8::timestamptz IS NULL OR own.created_at < $8::timestamptz)
               AND (NOT $9::boolean OR own.parent_id IS NULL)
               AND ($10::timestamptz IS NULL OR own.ended_at > $10::timestamptz)
               AND ($11::timestamptz IS NULL OR own.ended_at < $11::timestamptz)
               AND ($12::text = '' OR own.version = $12::text)
               AND ($13::uuid IS NULL OR own.owner = $13::uuid)
               AND ($15::text = '' OR starts_with(own.name, $15::text))
               AND ($18::text = '' OR own.failed_step IS NOT NULL AND own.workflow = $18::text AND own.failed_step = $19::text AND own.failed_type = $20::text)
               AND ($16::text = '' OR EXISTS (
                   SELECT FROM durable.tag AS g
                   WHERE g.shard = own.shard AND g.run_id = own.id AND g.key = $16::text AND ($17::text = '' OR g.value = $17::text)
               )) AS matches
        FROM (
            SELECT r.shard, r.id, r.name, r.workflow, r.queue, r.status, r.priority, r.created_at, r.parent_id, r.ended_at, r.version, r.owner,
                   r.failed_step, r.failed_type
            FROM durable.run AS r
            WHERE r.shard = place.shard::smallint AND r.id < $1::uuid AND r.id >= $14::uuid
            ORDER BY r.id DESC
            LIMIT $2::integer
        ) AS own
    ) AS r
), reached AS MATERIALIZED (
    SELECT part.id FROM part WHERE part.number = $2::integer ORDER BY part.id DESC LIMIT 1
)
SELECT reached.id, hit.id
FROM (SELECT 1) AS once
LEFT JOIN reached ON true
LEFT JOIN LATERAL (SELECT part.id FROM part WHERE part.matches AND (reached.id IS NULL OR part.id >= reached.id)) AS hit ON true
ORDER BY hit.id DESC;
