-- Deletes a superseded generation by its archive ID.
DELETE FROM durable_generation WHERE archive_id = ?;
