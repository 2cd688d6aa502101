-- Marks a new run that has a time by which it must begin.
UPDATE durable_run SET control = control | 8 WHERE shard = ? AND id = ?;
