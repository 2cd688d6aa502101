-- Ends a transaction of the ceiling.
COMMIT;
