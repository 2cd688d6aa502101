-- Forgets runs of workers that are gone.
DELETE FROM durable_terminated WHERE at < ?;
