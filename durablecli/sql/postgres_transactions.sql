-- Returns how many transactions have been open for more than five minutes, and for how many seconds the oldest has been. They hold
-- back the events and the vacuum. A role without the rights of pg_read_all_stats sees its own only.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.count(*)::pg_catalog.int4,
       coalesce(pg_catalog.max(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) a.xact_start)), 0)::pg_catalog.int4
FROM pg_catalog.pg_stat_activity AS a
WHERE a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
  AND a.xact_start OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) INTERVAL '5 minutes');
