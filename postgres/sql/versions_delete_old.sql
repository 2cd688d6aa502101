-- Deletes versions without a sign of life since $1.
DELETE FROM durable.version AS v WHERE v.seen_at < $1::timestamptz;
