-- Whether migrations were ever applied to this file.
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'durable_migration';
