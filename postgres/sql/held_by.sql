-- Returns the runs that a claim took, by its worker ($4) and nonce ($5), if their leases still end at the
-- time that the claim set ($3). It finds the runs of a claim whose result was lost.
SELECT r.id, r.epoch
FROM unnest($1::text[], $2::text[]) AS pair(queue, workflow)
CROSS JOIN LATERAL (
    SELECT r.id, r.epoch
    FROM durable.run AS r
    WHERE r.queue = pair.queue AND r.workflow = pair.workflow AND r.wake_at = $3::timestamptz
      AND r.status = 2 AND r.owner = $4::uuid AND (r.epoch & 4294967295) = $5::bigint
    OFFSET 0
) AS r;
