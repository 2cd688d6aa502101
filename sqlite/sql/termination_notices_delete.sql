-- Deletes the notices of terminated runs that a worker has read.
DELETE FROM durable_terminated WHERE worker = ? AND at < ?;
