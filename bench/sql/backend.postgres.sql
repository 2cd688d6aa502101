-- Returns the process of this connection's backend.
SELECT pg_catalog.pg_backend_pid();
