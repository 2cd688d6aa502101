-- Releases the presence lock of one worker, in a session that holds those of others too; see presence_lock.sql.
SELECT pg_advisory_unlock(hashtextextended('durable worker ' || $1::uuid::text, 7081));
