-- The owner applies migrations: its store is opened as usual. Nothing else needs this role, and it needs no
-- right to create anything but its own schema's tables.
CREATE SCHEMA durable AUTHORIZATION durable_owner;
