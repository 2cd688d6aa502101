-- Records a migration, in the transaction that applies it.
INSERT INTO durable_migration (version, name, applied_at) VALUES (?, ?, ?);
