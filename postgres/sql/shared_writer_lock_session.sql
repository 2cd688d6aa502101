-- Marks a session as a worker's, so that a takeover waits for its writes; see writers_in_flight.sql. All workers
-- share the lock, and it ends with the session.
SELECT pg_catalog.pg_advisory_lock_shared(7081, 1);
