-- Returns the version of the schema.
SELECT coalesce(pg_catalog.max(version), 0) FROM durable.migration;
