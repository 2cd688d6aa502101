-- Returns what exists before any migration is applied: the server's version, the database's encoding,
-- whether the schema named $1 exists, and whether the table of migrations ($2, quoted) exists.
SELECT current_setting('server_version_num')::integer,
       current_setting('server_encoding'),
       EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1::text),
       to_regclass($2::text) IS NOT NULL;
