-- Deletes a run that has ended.
DELETE FROM durable_run WHERE id = ? AND status >= 5;
