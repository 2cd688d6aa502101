-- Extends the leases that are still held with this epoch, and returns the extended ones. A row that
-- another transaction has locked is left out: a user's transaction that writes a checkpoint holds FOR
-- SHARE on it, and waiting for that lock would cost the worker all its other leases. Nobody can claim the
-- run while it is locked.
WITH free AS MATERIALIZED (
    SELECT held.shard, held.id
    FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS held(shard, id, epoch)
    CROSS JOIN LATERAL (
        SELECT FROM durable.run AS r
        WHERE r.shard = held.shard AND r.id = held.id AND r.epoch = held.epoch AND r.status = 2 AND r.owner = $4::uuid
        FOR UPDATE SKIP LOCKED
    ) AS free
)
UPDATE durable.run AS r
SET wake_at = $5::timestamptz
FROM free
WHERE r.shard = free.shard AND r.id = free.id
RETURNING r.id;
