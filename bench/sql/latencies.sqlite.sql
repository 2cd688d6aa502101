-- Returns the time from start to end of the runs that ended in a window, in milliseconds.
SELECT (ended_at - created_at) / 1000.0
FROM durable_run
WHERE ended_at >= ? AND ended_at < ? AND workflow = ?;
