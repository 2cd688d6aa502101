-- Takes the lock that shows that this worker is alive. The lock ends with the session, and so when the
-- process dies. The key is a hash of the worker's ID, which presence_dead_workers.sql computes in the same way.
-- Shared holders are probes, which hold it only for a moment.
SELECT pg_advisory_lock(hashtextextended('durable worker ' || $1::uuid::text, 7081)), clock_timestamp(), pg_postmaster_start_time();
