-- Forgets runs of which the worker was told.
DELETE FROM durable_terminated WHERE worker = ? AND at < ?;
