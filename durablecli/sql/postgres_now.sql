-- Returns the time of the server's clock.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.clock_timestamp();
