-- Returns the version of the schema: the number of the last migration that was applied.
SELECT coalesce(max(version), 0) FROM durable.migration;
