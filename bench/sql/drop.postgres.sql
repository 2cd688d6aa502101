-- Drops such a database, even if clients are still connected.
DROP DATABASE IF EXISTS bench_database WITH (FORCE);
