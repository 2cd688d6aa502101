-- Removes workers that nobody could find dead, an hour after their last heartbeat.
DELETE FROM durable_worker WHERE heartbeat_at < ?;
