-- The mark of writer.sql for one transaction, where a pooler would hand a session's on to strangers.
SELECT pg_catalog.pg_advisory_xact_lock_shared(7081, 1);
