-- Returns the time of the database's clock. All times that durable stores are measured on it.
SELECT clock_timestamp();
