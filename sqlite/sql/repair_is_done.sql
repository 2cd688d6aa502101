-- Selects a generation of a run, if the request has superseded it.
SELECT number FROM durable_generation WHERE run_id = ? AND number = ? AND request = ?;
