-- Removes the mark (8) that a run has a time by which it must begin. The run must be running (2) at the epoch.
UPDATE durable_run SET control = control & ~8 WHERE shard = ? AND id = ? AND epoch = ? AND status = 2;
