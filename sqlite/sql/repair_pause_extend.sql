-- Records that the pause of a run for its repair ends by itself at a time.
INSERT INTO durable_repair_pause (run_id, expires_at)
VALUES (?1, ?2)
ON CONFLICT (run_id) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at);
