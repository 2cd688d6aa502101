-- Returns the statements of this database that contain the text $1 or $2, which is the name of the schema with a dot, quoted or not, and that take
-- more than $3 milliseconds on average: the five that have taken the most time together. extension_schema is replaced.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.sum(s.calls)::pg_catalog.int8 AS calls,
       pg_catalog.sum(s.total_exec_time) OPERATOR(pg_catalog./) pg_catalog.sum(s.calls)::pg_catalog.float8 AS mean,
       s.query
FROM extension_schema.pg_stat_statements AS s
WHERE s.dbid OPERATOR(pg_catalog.=) (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
  AND (pg_catalog.strpos(s.query, $1) OPERATOR(pg_catalog.>) 0 OR pg_catalog.strpos(s.query, $2) OPERATOR(pg_catalog.>) 0)
GROUP BY s.query
HAVING pg_catalog.sum(s.calls) OPERATOR(pg_catalog.>=) 5
   AND pg_catalog.sum(s.total_exec_time) OPERATOR(pg_catalog.>) ($3::pg_catalog.float8 OPERATOR(pg_catalog.*) pg_catalog.sum(s.calls)::pg_catalog.float8)
ORDER BY pg_catalog.sum(s.total_exec_time) DESC
LIMIT 5;
