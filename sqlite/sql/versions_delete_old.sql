-- Deletes versions without a report since the given time.
DELETE FROM durable_version WHERE seen_at < ?;
