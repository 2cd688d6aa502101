-- Marks a session as a worker's, whose writes a takeover waits for; see in_flight.sql. The lock is
-- shared by all of them and goes with the session.
SELECT pg_catalog.pg_advisory_lock_shared(7081, 1);
