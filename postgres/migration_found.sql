-- What is there before anything is applied: the server's version, the schema, and the
-- table that records migrations ($1 the schema's name, $2 the table's, quoted).
SELECT current_setting('server_version_num')::integer,
       EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1::text),
       to_regclass($2::text) IS NOT NULL;
