-- Returns what exists before any migration is applied: the server's version, the database's encoding,
-- whether the schema named $1 exists, whether the table of migrations ($2, quoted) exists, and whether the server
-- is a Citus.
SELECT current_setting('server_version_num')::integer,
       current_setting('server_encoding'),
       EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1::text),
       to_regclass($2::text) IS NOT NULL,
       to_regprocedure('citus_version()') IS NOT NULL;
