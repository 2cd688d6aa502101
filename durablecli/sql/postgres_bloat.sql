-- Returns the tables of the schema $1 in which more than 100,000 rows, and more rows than live, are dead.
SELECT s.relname::pg_catalog.text, s.n_live_tup, s.n_dead_tup
FROM pg_catalog.pg_stat_user_tables AS s
WHERE s.schemaname = $1 AND s.n_dead_tup > 100000 AND s.n_dead_tup > s.n_live_tup
ORDER BY s.n_dead_tup DESC;
