-- Returns the version of the schema, 0 if no migration was applied.
SELECT coalesce(max(version), 0) FROM durable_migration;
