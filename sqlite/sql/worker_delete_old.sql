-- Deletes workers an hour after their last heartbeat, such as those that no worker could report as dead.
DELETE FROM durable_worker WHERE heartbeat_at < ?;
