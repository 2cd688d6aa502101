-- Returns the time of the server's clock.
SELECT pg_catalog.clock_timestamp();
