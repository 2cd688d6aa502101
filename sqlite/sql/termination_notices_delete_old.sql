-- Deletes old notices of terminated runs, such as those of dead workers.
DELETE FROM durable_terminated WHERE at < ?;
