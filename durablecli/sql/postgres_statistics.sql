-- Returns the schema of the extension pg_stat_statements, empty if it is not installed, and whether this role sees the statements of others.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT coalesce((SELECT n.nspname::pg_catalog.text
                 FROM pg_catalog.pg_extension AS e
                 JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
                 WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'), ''),
       pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE');
