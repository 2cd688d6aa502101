-- The database's clock; all times that durable stores are measured on it.
SELECT clock_timestamp();
