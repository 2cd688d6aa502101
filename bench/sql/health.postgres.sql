-- How the two large tables look: their bytes, those of their indexes, those of the index that
-- every claim reads, rows that nobody sees any more, and how often autovacuum has been there.
SELECT sum(pg_catalog.pg_table_size(s.relid))::bigint,
       sum(pg_catalog.pg_indexes_size(s.relid))::bigint,
       pg_catalog.pg_relation_size('durable.run_wake'),
       sum(s.n_dead_tup)::bigint,
       sum(s.autovacuum_count + s.autoanalyze_count)::bigint
FROM pg_catalog.pg_stat_user_tables AS s
WHERE s.schemaname = 'durable' AND s.relname IN ('run', 'step');
