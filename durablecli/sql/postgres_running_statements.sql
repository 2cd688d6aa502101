-- Returns the statements of this database that have been executing for more than $1 seconds, the longest first: the process, the seconds, the program,
-- and what it waits for. A role without the rights of pg_read_all_stats sees its own only.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT a.pid,
       pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) a.query_start)::pg_catalog.int4,
       CASE WHEN a.application_name OPERATOR(pg_catalog.<>) '' THEN a.application_name ELSE coalesce(a.usename::pg_catalog.text, '') END,
       CASE WHEN a.wait_event IS NULL THEN '' ELSE pg_catalog.concat(a.wait_event_type, ' ', a.wait_event) END
FROM pg_catalog.pg_stat_activity AS a
WHERE a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
  AND a.state OPERATOR(pg_catalog.=) 'active'
  AND a.backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND a.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
  AND a.query_start OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 0, 0, $1::pg_catalog.float8))
ORDER BY a.query_start
LIMIT 5;
