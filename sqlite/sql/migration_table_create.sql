-- Creates the table of migrations.
CREATE TABLE IF NOT EXISTS durable_migration (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
