-- Returns the settings that decide whether commits are durable, and how many connections there are room for.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.current_setting('server_version'),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('fsync') OPERATOR(pg_catalog.=) 'on',
       pg_catalog.current_setting('full_page_writes') OPERATOR(pg_catalog.=) 'on',
       pg_catalog.current_setting('synchronous_commit'),
       pg_catalog.current_setting('autovacuum') OPERATOR(pg_catalog.=) 'on',
       pg_catalog.current_setting('max_connections')::pg_catalog.int4
           OPERATOR(pg_catalog.-) pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4,
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_type OPERATOR(pg_catalog.=) 'client backend')::pg_catalog.int4;
