-- The owner applies migrations: it opens its store without the option WithoutMigrations. Nothing else
-- needs this role, and it needs no right to create anything but the tables of its own schema.
CREATE SCHEMA durable AUTHORIZATION durable_owner;
