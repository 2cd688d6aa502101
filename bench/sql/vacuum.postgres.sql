-- Leaves the tables as autovacuum would have left them.
VACUUM ANALYZE durable.run, durable.step;
