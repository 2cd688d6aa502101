-- Removes a worker from the registry.
DELETE FROM durable_worker WHERE id = ?;
