-- Takes the mark off a woken run: its worker is being told, also of the deadline as it then is.
UPDATE durable_run
SET woken = 0
WHERE shard = ? AND id = ? AND epoch = ? AND owner = ? AND status = 2 AND woken = 1
RETURNING deadline_at;
