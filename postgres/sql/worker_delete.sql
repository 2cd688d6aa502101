-- Takes workers off the registry: the one that leaves ($2) at once, dead ones a minute
-- after their last heartbeat, since others, who execute other workflows, are still to
-- see that they are dead; and any that has been silent for an hour, which nobody could
-- find dead where there is no presence lock. SKIP LOCKED for those,
-- because several may do this at once; the own row is waited for, since a last note of its
-- presence may still be on its way.
WITH gone AS MATERIALIZED (
    SELECT id FROM durable.worker
    WHERE id <> $2::uuid
      AND (id = ANY ($1::uuid[]) AND heartbeat_at < clock_timestamp() - interval '1 minute'
           OR heartbeat_at < clock_timestamp() - interval '1 hour')
    ORDER BY id
    FOR UPDATE SKIP LOCKED
)
DELETE FROM durable.worker AS w
WHERE w.id = $2::uuid AND w.id = ANY ($1::uuid[])
   OR w.id IN (SELECT id FROM gone);
