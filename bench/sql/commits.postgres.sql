-- Counts the transactions of a database, and the backends that are connected to it: the
-- transactions of a backend are certain to be counted only after it has ended. The query runs in
-- another database, so it does not count itself.
SELECT d.xact_commit,
       (SELECT count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.datname = d.datname AND a.backend_type = 'client backend')
FROM pg_catalog.pg_stat_database AS d
WHERE d.datname = $1;
