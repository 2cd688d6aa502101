-- Prepares a claim, in its transaction. It reports whether runs exist in the gaps between the lanes that
-- this process knows: each pair of $1 and $2 bounds a gap, exclusively. A gap without runs costs one index
-- probe. If there are runs, lanes_find_unknown.sql finds their lanes. A setting that ends with the transaction tells
-- claim_runs.sql, the next statement, about it.
--
-- The second column is when the next run of the lanes $3 is due after $4.
--
-- The third column tells whether a version of the code has arrived after $5. Then claim_runs.sql claims nothing, because this
-- worker does not know yet which runs belong to that version. NULL: the lanes have no runs of other versions.
SELECT found.unknown, found.next_due, found.newer IS NOT NULL AND set_config('durable_claim.unknown', 'true', true) = 'true'
FROM (
    SELECT set_config('durable_claim.unknown', EXISTS (
               SELECT 1
               FROM unnest($1::bigint[], $2::bigint[]) AS gap(low, high)
               CROSS JOIN LATERAL (
                   SELECT 1
                   FROM durable.run AS r
                   WHERE r.wake_at IS NOT NULL AND r.lane > gap.low AND r.lane < gap.high
                   ORDER BY r.lane
                   LIMIT 1
               ) AS r
           )::text, true) = 'true' AS unknown,
           (
               SELECT min(r.wake_at)
               FROM unnest($3::bigint[]) AS own(lane)
               CROSS JOIN LATERAL (
                   SELECT r.wake_at
                   FROM durable.run AS r
                   WHERE r.lane = own.lane AND r.wake_at > $4::timestamptz
                   ORDER BY r.wake_at
                   LIMIT 1
               ) AS r
           ) AS next_due,
           CASE WHEN $5::timestamptz IS NOT NULL THEN (
               SELECT v.arrived_at FROM durable.version AS v WHERE v.arrived_at > $5::timestamptz ORDER BY v.arrived_at LIMIT 1
           ) END AS newer
    OFFSET 0
) AS found;
