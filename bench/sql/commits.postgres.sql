-- Transactions of a database, and who is connected to it: a backend's are certain to be
-- counted once it has gone. Asked from another database, so that asking is not counted.
SELECT d.xact_commit,
       (SELECT count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.datname = d.datname AND a.backend_type = 'client backend')
FROM pg_catalog.pg_stat_database AS d
WHERE d.datname = $1;
