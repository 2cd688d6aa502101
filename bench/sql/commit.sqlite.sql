-- Commits a transaction of the ceiling.
COMMIT;
