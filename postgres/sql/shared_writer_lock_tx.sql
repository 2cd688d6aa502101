-- Takes the mark of shared_writer_lock_session.sql for one transaction, because a pooler would pass the mark of a session on
-- to other clients.
SELECT pg_catalog.pg_advisory_xact_lock_shared(7081, 1);
