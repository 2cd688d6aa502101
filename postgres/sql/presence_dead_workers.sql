-- Returns how many other workers have taken their presence lock, without those in $2, and how many of these have lower IDs
-- than the caller. Further rows are the dead workers: those that took their presence lock although nobody holds it now. It
-- checks the $3 workers that follow the caller in the order of their IDs, and those in $2. It leaves out
-- workers that took the lock from another server, or before this server last started, because the lock
-- was not kept. Only the start time of the server that gave the lock shows that, because a standby that
-- is promoted started long before. If the calling worker has only just taken its lock again, nobody is
-- returned: after a failover all workers reconnect at about the same time, and none of them is dead. A
-- worker that has only just started is no sign of a failover, and may call at once. The lock that a probe
-- takes ends with its transaction, that is, at once.
WITH present AS MATERIALIZED (
    SELECT w.id, w.id = ANY ($2::uuid[]) AS known
    FROM durable.worker AS w
    WHERE w.id <> $1::uuid
      AND w.server_started_at = pg_postmaster_start_time()
      AND NOT EXISTS (
          SELECT FROM durable.worker AS me
          WHERE me.id = $1::uuid AND me.attended_at > clock_timestamp() - interval '2 seconds'
            AND me.attended_at > me.started_at + interval '2 seconds'
      )
), candidate AS MATERIALIZED (
    (SELECT id FROM present WHERE NOT known ORDER BY id < $1::uuid, id LIMIT $3::integer)
    UNION ALL
    SELECT id FROM present WHERE known
)
SELECT NULL::uuid, count(*)::integer, (count(*) FILTER (WHERE id < $1::uuid))::integer
FROM present
WHERE NOT known
UNION ALL
SELECT id, 0, 0
FROM candidate
WHERE pg_try_advisory_xact_lock_shared(hashtextextended('durable worker ' || id::text, 7081));
