-- Returns the settings that decide whether commits are durable, and how many connections there are room for.
SELECT pg_catalog.current_setting('server_version'),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('fsync') = 'on',
       pg_catalog.current_setting('full_page_writes') = 'on',
       pg_catalog.current_setting('synchronous_commit'),
       pg_catalog.current_setting('autovacuum') = 'on',
       pg_catalog.current_setting('max_connections')::pg_catalog.int4
           - pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4,
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_type = 'client backend')::pg_catalog.int4;
