-- Makes the runs of dead workers claimable now. The leases of all workers end soon, so a short range of
-- the wake index per pair contains them. Locked rows are left out: another transaction uses them, and
-- their leases end by themselves.
WITH orphan AS MATERIALIZED (
    SELECT r.shard, r.id
    FROM unnest($1::text[], $2::text[]) AS pair(queue, workflow)
    CROSS JOIN LATERAL (
        SELECT r.shard, r.id
        FROM durable.run AS r
        WHERE r.queue = pair.queue AND r.workflow = pair.workflow
          AND r.wake_at > $3::timestamptz AND r.wake_at <= $4::timestamptz
          AND r.status = 2 AND r.owner = ANY ($5::uuid[])
        FOR UPDATE SKIP LOCKED
    ) AS r
)
UPDATE durable.run AS r
SET wake_at = $3::timestamptz
FROM orphan
WHERE r.shard = orphan.shard AND r.id = orphan.id;
