-- Workers that are seen to be gone: they took their presence lock, and nobody holds it.
-- Left out are those who took it from another server than this one, or before this one last
-- started, since the lock was not kept: a standby that is promoted started long before, so only
-- the very start time of the server that gave the lock tells. Left out is also everybody, while the asking worker itself has only just come back to its
-- own: after a failover all do at about the same time, and none is dead. A worker that
-- has only just started says nothing about that, and may look at once.
-- The lock that a probe takes ends with its transaction, that is at once.
WITH candidate AS MATERIALIZED (
    SELECT w.id
    FROM durable.worker AS w
    WHERE w.id <> $1::uuid
      AND w.server_started_at = pg_postmaster_start_time()
      AND NOT EXISTS (
          SELECT FROM durable.worker AS me
          WHERE me.id = $1::uuid AND me.attended_at > clock_timestamp() - interval '2 seconds'
            AND me.attended_at > me.started_at + interval '2 seconds'
      )
)
SELECT id
FROM candidate
WHERE pg_try_advisory_xact_lock_shared(hashtextextended('durable worker ' || id::text, 7081));
