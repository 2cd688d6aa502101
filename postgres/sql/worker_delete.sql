-- Removes workers from the registry. The worker that stops ($2) is removed at once. Dead workers are
-- removed a minute after their last heartbeat, so that workers with other workflows can still see that
-- they are dead. Any worker without a heartbeat for an hour is removed, because nobody can detect its
-- death if there is no presence lock. SKIP LOCKED for the others, because several workers may do this at
-- once. The own row is waited for, because a last update of its presence may be in progress.
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
