-- Allows one migrator at a time for each schema. The lock ends with the transaction, so a process that is
-- killed during a migration leaves none behind.
SELECT pg_advisory_xact_lock(hashtextextended('durable migration ' || $1::text, 7081));
