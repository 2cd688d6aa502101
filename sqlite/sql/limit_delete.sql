-- Removes the bounds of a limit.
DELETE FROM durable_step_limit WHERE name = ?;
