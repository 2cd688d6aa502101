-- Holds the lock that shows that this worker lives; it goes with the session, so the
-- moment the process dies. The key is a hash of the worker's ID, which presence_dead.sql
-- computes in the same way. Shared holders are probes, and gone in an instant.
SELECT pg_advisory_lock(hashtextextended('durable worker ' || $1::uuid::text, 7081)), clock_timestamp(), pg_postmaster_start_time();
