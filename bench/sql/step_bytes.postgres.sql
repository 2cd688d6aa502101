-- What the checkpoints take, with their index.
SELECT pg_catalog.pg_total_relation_size('durable.step');
