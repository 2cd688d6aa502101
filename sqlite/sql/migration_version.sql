-- The schema's version, 0 if none was applied.
SELECT coalesce(max(version), 0) FROM durable_migration;
