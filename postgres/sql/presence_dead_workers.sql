-- Returns dead workers: those that took their presence lock although nobody holds it now. It leaves out
-- workers that took the lock from another server, or before this server last started, because the lock
-- was not kept. Only the start time of the server that gave the lock shows that, because a standby that
-- is promoted started long before. If the calling worker has only just taken its lock again, nobody is
-- returned: after a failover all workers reconnect at about the same time, and none of them is dead. A
-- worker that has only just started is no sign of a failover, and may call at once. The lock that a probe
-- takes ends with its transaction, that is, at once.
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
