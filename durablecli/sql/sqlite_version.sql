-- Returns the version of the schema.
SELECT coalesce(max(version), 0) FROM durable_migration;
