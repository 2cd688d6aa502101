-- Prepares a claim, in its transaction. It reports whether runs exist in the gaps between the lanes that
-- this process knows: each pair of $1 and $2 bounds a gap, exclusively. A gap without runs costs one index
-- probe. If there are runs, lanes_find_unknown.sql finds their lanes. A setting that ends with the transaction tells
-- claim_runs.sql, the next statement, about it.
--
-- The second column is when the next run of the lanes $3 is due after $4.
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
       )::text, true) = 'true',
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
       );
