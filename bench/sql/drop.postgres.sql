-- Removes such a database, whoever is still connected.
DROP DATABASE IF EXISTS bench_database WITH (FORCE);
