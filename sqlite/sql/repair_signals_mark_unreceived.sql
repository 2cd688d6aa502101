-- Makes the signals that a receive of a run has taken wait again.
UPDATE durable_signal SET step = NULL WHERE shard = ? AND run_id = ? AND step = ?;
