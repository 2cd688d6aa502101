-- Reports whether the file has the table of migrations.
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'durable_migration';
