-- Selects the generations of a run that a request has superseded.
SELECT number FROM durable_generation WHERE run_id = ? AND request = ?;
