-- Removes the bounds of a limit.
DELETE FROM durable.step_limit AS l WHERE l.name = $1::text RETURNING l.name;
