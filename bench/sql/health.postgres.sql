-- Reads the health of the two large tables: their bytes, the bytes of their indexes, the bytes of
-- the index that every claim reads, the number of dead rows, and how often autovacuum and
-- autoanalyze have run.
SELECT sum(pg_catalog.pg_table_size(s.relid))::bigint,
       sum(pg_catalog.pg_indexes_size(s.relid))::bigint,
       pg_catalog.pg_relation_size('durable.run_wake'),
       sum(s.n_dead_tup)::bigint,
       sum(s.autovacuum_count + s.autoanalyze_count)::bigint
FROM pg_catalog.pg_stat_user_tables AS s
WHERE s.schemaname = 'durable' AND s.relname IN ('run', 'step');
