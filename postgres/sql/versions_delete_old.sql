-- Deletes versions without a report since $1.
DELETE FROM durable.version AS v WHERE v.seen_at < $1::timestamptz;
