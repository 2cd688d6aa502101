-- The version that the schema is at: the number of the last migration applied.
SELECT coalesce(max(version), 0) FROM durable.migration;
