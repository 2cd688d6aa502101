-- Returns the bytes of the checkpoints, including their indexes.
SELECT pg_catalog.pg_total_relation_size('durable.step');
