-- Selects the superseded generation with an archive ID.
SELECT run_id, number FROM durable_generation WHERE archive_id = ?;
