-- Creates a limit key, or moves its time on; the time never goes back. Returns the limit key.
INSERT INTO durable_limit_key (limit_name, key, now_at) VALUES (?, ?, ?)
ON CONFLICT (limit_name, key) DO UPDATE SET now_at = max(now_at, excluded.now_at)
RETURNING now_at, rate_used_until, closed_until;
