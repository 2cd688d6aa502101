-- Returns the version of the schema.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT coalesce(pg_catalog.max(version), 0) FROM durable.migration;
