-- Deletes versions without a sign of life since the given time.
DELETE FROM durable_version WHERE seen_at < ?;
