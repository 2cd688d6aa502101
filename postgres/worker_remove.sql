-- Takes workers off the registry: the one that leaves ($2) at once, dead ones a minute
-- after their last heartbeat, since others, who execute other workflows, are still to
-- see that they are dead; and any that has been silent for an hour, which nobody could
-- find dead where there is no presence lock. SKIP LOCKED, because several may do this at once.
WITH gone AS MATERIALIZED (
    SELECT id FROM durable.worker
    WHERE id = $2::uuid AND id = ANY ($1::uuid[])
       OR id = ANY ($1::uuid[]) AND heartbeat_at < clock_timestamp() - interval '1 minute'
       OR heartbeat_at < clock_timestamp() - interval '1 hour'
    ORDER BY id
    FOR UPDATE SKIP LOCKED
)
DELETE FROM durable.worker AS w
USING gone
WHERE w.id = gone.id;
