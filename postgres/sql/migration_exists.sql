-- What is there before anything is applied: the server's version, the database's encoding, whether the
-- schema exists ($1 its name), and the table that records migrations ($2 its name, quoted).
SELECT current_setting('server_version_num')::integer,
       current_setting('server_encoding'),
       EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1::text),
       to_regclass($2::text) IS NOT NULL;
