-- Returns the tables of the schema $1 in which more than 100,000 rows, and more rows than live, are dead.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT s.relname::pg_catalog.text, s.n_live_tup, s.n_dead_tup
FROM pg_catalog.pg_stat_user_tables AS s
WHERE s.schemaname OPERATOR(pg_catalog.=) $1 AND s.n_dead_tup OPERATOR(pg_catalog.>) 100000 AND s.n_dead_tup OPERATOR(pg_catalog.>) s.n_live_tup
ORDER BY s.n_dead_tup DESC;
